#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures a project that has this one as a part, by FetchContent, and checks that only libraries and programs come with
# it; with "build" also builds and runs its programs, which takes as long as building libshmem.
set -euo pipefail

[[ $# == 1 || ($# == 2 && $2 == build) ]] || {
  echo "Usage: consumer.sh SOURCE_FOLDER [build]" >&2
  exit 2
}
source="$1"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

die() {
  echo "consumer.sh: $*"
  exit 1
}

cmake -S "$source/tests/packages/consumer" -B "$work" -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
  -DGBA_SOURCE_FOLDER="$source" >"$work/log" 2>&1 || die "$(<"$work/log")"
! grep -qE -- '-Wconversion|-Werror' "$work/compile_commands.json" || die "its warnings are this project's"
! grep -qE '"file": "[^"]*/(tests/unit|tests/integration|examples|bench/bench_[a-z]+)' "$work/compile_commands.json" ||
  die "tests, benchmarks or examples are built"
[[ ! -e "$work/CPackConfig.cmake" && ! -e "$work/CTestTestfile.cmake" ]] || die "it has tests or packages"
grep -q '^CMAKE_BUILD_TYPE:STRING=$' "$work/CMakeCache.txt" || die "its build type was set"
! grep -q 'file(INSTALL' "$work"/_deps/gba-build/{shmem,driver,udev}/cmake_install.cmake ||
  die "libshmem would be installed with it"
cmake --build "$work" --target help >"$work/targets"
for target in lint uninstall tests; do
  [[ "$(grep -c "^$target: phony" "$work/targets")" == 1 ]] || die "no target $target of its own"
done
if [[ "${2:-}" == build ]]; then
  cmake --build "$work" --target consumer barrier_user oshrun >"$work/log" 2>&1 || die "$(tail -n 60 "$work/log")"
  "$work/barrier_user" || die "barrier_user failed"
  output="$("$work/_deps/gba-build/bin/oshrun" -n 2 --gba off --timeout 60 "$work/consumer")"
  [[ "$output" == *"PE 1 of 2, libgba "* ]] || die "the program printed: $output"
fi
