#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/versions.sh [--update] [BUILD]

Prints a row of the table in docs/install.md: the release, architecture and compiler, the MPI, UCX,
PMIx and Slurm that the build in BUILD (default: build) finds here, which of the parts that depend
on these were built, and the outcome and date of the last tests: those of scripts/test.sh, of
scripts/test.sh --root, or of the test of packages for arm64, which leave it in BUILD. A build for
another architecture has the versions of the packages that it was built with.

  --update   also puts the row into the table, instead of that of the same release, architecture and
             compiler, of whatever version
TEXT
}

# The version of a Debian package without Debian's suffix, or "-". "4.3.0+really4.2.1-1" is 4.2.1.
version() {
  local text
  if [[ -n "$sysroot" ]]; then
    text="$(awk -v package="$1" '$1 == package { print $2 }' "$sysroot/.versions")"
  else
    text="$(dpkg-query -W -f='${Version}' "$1" 2>/dev/null)" || text=
  fi
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
start-by-MPI-5's-interface lib/libshmem_bootstrap_abi.so
coll/gba lib/openmpi/mca_coll_gba.so
scoll/gba lib/openmpi/mca_scoll_gba.so
TEXT
  compgen -G "$build/lib/python/shmem_kv/*.so" >/dev/null && built+=(python)
  compgen -G "$build/lib/python/shmem_torch/*.so" >/dev/null && built+=("torch $(version python3-torch)")
  printf -v name '%s, ' "${built[@]:--}"
  echo "${name%, }"
}

compiler() {
  cat "$build"/CMakeFiles/*/CMakeCXXCompiler.cmake |
    sed -nE 's/^set\(CMAKE_CXX_COMPILER_(ID|VERSION) "(.*)"\)/\2/p' | sed 's/^GNU$/g++/; s/^Clang$/clang/' | paste -sd ' '
}

# The outcome of the last tests of this build, by the first of the files that is there.
tests() {
  local report="$build/tests.xml" log="$build/test.log"
  if [[ -f "$build/tested" ]]; then
    echo "$(<"$build/tested"), $(date -r "$build/tested" +%F)"
  elif [[ -f "$report" ]]; then
    # From ctest --output-junit, of scripts/test.sh --root.
    outcome "$report" '<testcase ' '<testcase .* status="run"' '<testcase .* status="(notrun|disabled)"'
  elif [[ -f "$log" ]]; then
    # What ctest printed, of scripts/test.sh.
    outcome "$log" '^ *[0-9]+/[0-9]+ Test ' '^ *[0-9]+/[0-9]+ Test .* Passed +[0-9]' \
      '^ *[0-9]+/[0-9]+ Test .*\*(Skipped|Not Run)'
  else
    echo -
  fi
}

# outcome FILE ALL PASSED SKIPPED: the numbers of lines of FILE that these expressions match. The other tests failed.
outcome() {
  local file="$1" all passed skipped failed
  all="$(grep -cE "$2" "$file")" || true
  passed="$(grep -cE "$3" "$file")" || true
  skipped="$(grep -cE "$4" "$file")" || true
  failed=$((all - passed - skipped))
  [[ $failed == 0 ]] && failed= || failed=", $failed failed"
  [[ $skipped == 0 ]] && skipped= || skipped=", $skipped skipped"
  echo "$passed of $all passed$skipped$failed, $(date -r "$file" +%F)"
}

row() {
  local release
  # shellcheck source=/dev/null
  release="$(. /etc/os-release && echo "${PRETTY_NAME#Debian GNU/Linux }")"
  printf '| %s | %s | %s | %s | Open MPI %s, MPICH %s | %s | %s | %s | %s | %s |\n' "Debian $release" "$architecture" \
    "$(compiler)" "$(cmake --version | sed -n '1s/.* //p')" "$(version libopenmpi-dev)" "$(version libmpich-dev)" \
    "$(version libucx-dev)" "$(version libpmix-dev)" "$(version slurmctld)" "$(parts)" "$(tests)"
}

# update ROW: in the table of the page, which ends with a line that is no row.
update() {
  local page="$ROOT/docs/install.md" text
  text="$(awk -F ' \\| ' -v row="$1" '
    BEGIN { split(row, own, FS); split(own[3], compiler, " ") }
    /^\| release \| architecture \|/ { table = found = 1 }
    table && $1 == own[1] && $2 == own[2] && index($3, compiler[1] " ") == 1 { $0 = row; row = "" }
    table && !/^\|/ { if (row != "") { print row } table = 0 }
    { print }
    END { exit !found }' "$page")" || die "$page has no table of releases"
  printf '%s\n' "$text" >"$page"
}

handle_help_option "$@"
update=
if [[ "${1:-}" == --update ]]; then
  update=yes
  shift
fi
[[ $# -le 1 ]] || usage_error "expected one argument at most, the build folder"
build="$(realpath -m "${1:-$ROOT/build}")"
[[ -f "$build/CMakeCache.txt" ]] || die "$build is not a build folder (scripts/build.sh makes build/)"
sysroot=
architecture="$(uname -m)"
if grep -q '^CMAKE_TOOLCHAIN_FILE:.*/arm64\.cmake$' "$build/CMakeCache.txt"; then
  sysroot="$ROOT/build-arm64-root"
  architecture=aarch64
fi
row="$(row)"
echo "$row"
[[ -z "$update" ]] || update "$row"
