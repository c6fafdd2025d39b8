#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/versions.sh [BUILD]

Prints a row of the table in docs/install.md: the release, architecture and compiler, the MPI, UCX,
PMIx and Slurm that the build in BUILD (default: build) finds here, which of the parts that depend
on these were built, and how many tests of the last run of scripts/test.sh --root passed, and when.
The others were skipped or failed.
TEXT
}

# The version of a Debian package without Debian's suffix, or "-". "4.3.0+really4.2.1-1" is 4.2.1.
version() {
  local text
  text="$(dpkg-query -W -f='${Version}' "$1" 2>/dev/null)" || text=
  text="${text#*:}"
  text="${text#*+really}"
  text="${text%%[-+~]*}"
  echo "${text:--}"
}

# What was built of the parts that the other software decides on.
parts() {
  local built=() name file
  while read -r name file; do
    [[ ! -e "$build/$file" ]] || built+=("$name")
  done <<'TEXT'
libgba lib/libgba.so
libshmem lib/libshmem.so
start-by-Open-MPI lib/libshmem_bootstrap_openmpi.so
start-by-MPICH lib/libshmem_bootstrap_mpich.so
coll/gba lib/openmpi/mca_coll_gba.so
scoll/gba lib/openmpi/mca_scoll_gba.so
TEXT
  compgen -G "$build/lib/python/shmem_kv/*.so" >/dev/null && built+=(python)
  printf -v name '%s, ' "${built[@]:--}"
  echo "${name%, }"
}

compiler() {
  cat "$build"/CMakeFiles/*/CMakeCXXCompiler.cmake |
    sed -nE 's/^set\(CMAKE_CXX_COMPILER_(ID|VERSION) "(.*)"\)/\2/p' | sed 's/^GNU$/g++/; s/^Clang$/clang/' | paste -sd ' '
}

# Of the run of ctest that scripts/test.sh --root has made; ctest's own log calls tests passed that were not run.
tests() {
  local report="$build/tests.xml" all passed
  [[ -f "$report" ]] || {
    echo -
    return
  }
  all="$(grep -c '<testcase ' "$report")" || true
  passed="$(grep -c '<testcase .* status="run"' "$report")" || true
  echo "$passed of $all passed, $(date -r "$report" +%F)"
}

handle_help_option "$@"
[[ $# -le 1 ]] || usage_error "expected one argument at most, the build folder"
build="$(realpath -m "${1:-$ROOT/build}")"
[[ -f "$build/CMakeCache.txt" ]] || die "$build is not a build folder (scripts/build.sh makes build/)"
# shellcheck source=/dev/null
release="$(. /etc/os-release && echo "${PRETTY_NAME#Debian GNU/Linux }")"
printf '| %s | %s | %s | %s | Open MPI %s, MPICH %s | %s | %s | %s | %s | %s |\n' "Debian $release" "$(uname -m)" "$(compiler)" \
  "$(cmake --version | sed -n '1s/.* //p')" "$(version libopenmpi-dev)" "$(version libmpich-dev)" "$(version libucx-dev)" \
  "$(version libpmix-dev)" "$(version slurmctld)" "$(parts)" "$(tests)"
