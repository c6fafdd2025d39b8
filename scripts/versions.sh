#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/versions.sh [BUILD]

Prints a row of the table in docs/install.md: the release, architecture and compiler, and the MPI,
UCX, PMIx and Slurm that a build in BUILD (default: build) finds here, and which of the parts that
depend on these were built.
TEXT
}

# The version of a Debian package without Debian's suffix, or "-".
version() {
  local text
  text="$(dpkg-query -W -f='${Version}' "$1" 2>/dev/null)" || text=
  text="${text#*:}"
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
start-by-MPI lib/libshmem_bootstrap_mpi.so
coll/gba lib/openmpi/mca_coll_gba.so
scoll/gba lib/openmpi/mca_scoll_gba.so
TEXT
  compgen -G "$build/lib/python/shmem_kv/*.so" >/dev/null && built+=(python)
  printf -v name '%s, ' "${built[@]:--}"
  echo "${name%, }"
}

handle_help_option "$@"
[[ $# -le 1 ]] || usage_error "expected one argument at most, the build folder"
build="$(realpath -m "${1:-$ROOT/build}")"
[[ -f "$build/CMakeCache.txt" ]] || die "$build is not a build folder (scripts/build.sh makes build/)"
compiler="$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")"
# shellcheck source=/dev/null
release="$(. /etc/os-release && echo "${PRETTY_NAME#Debian GNU/Linux }")"
printf '| %s | %s | %s %s | %s | %s | %s | %s | %s | %s |\n' "Debian $release" "$(uname -m)" "${compiler##*/}" \
  "$("$compiler" -dumpfullversion 2>/dev/null || "$compiler" -dumpversion)" "$(cmake --version | sed -n '1s/.* //p')" \
  "Open MPI $(version libopenmpi-dev)" "$(version libucx-dev)" "$(version libpmix-dev)" "$(version slurmctld)" "$(parts)"
