#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The switches of optional parts: AUTO builds what can be built, ON stops without it, OFF leaves it out. Only configures.
set -euo pipefail

[[ $# == 1 ]] || {
  echo "Usage: switches.sh SOURCE_FOLDER" >&2
  exit 2
}
source="$1"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

die() {
  echo "switches.sh: $*"
  exit 1
}

configure() {
  cmake -S "$source" -B "$work/build" -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DPKG_CONFIG_EXECUTABLE="$work/pkg-config" \
    -DGBA_BENCH=OFF -DGBA_EXAMPLES=OFF -DCMAKE_UNITY_BUILD=OFF "$@" >"$work/log" 2>&1
}

# A message of CMake may be broken into lines.
said() {
  tr -s ' \n' ' ' <"$work/log" | grep -qF -- "$1" || die "CMake did not say \"$1\": $(<"$work/log")"
}

switches=(SHMEM_UCX SHMEM_PMIX SHMEM_METRICS SHMEM_MPI GBA_OPENMPI SHMEM_PYTHON_MODULE GBA_TESTS)
declare -A package=([SHMEM_UCX]=libucx-dev [SHMEM_PMIX]=libpmix-dev [SHMEM_METRICS]=libmicrohttpd-dev [SHMEM_MPI]=libopenmpi-dev [GBA_OPENMPI]=libopenmpi-dev
  [SHMEM_PYTHON_MODULE]=python3-numpy [GBA_TESTS]=libgtest-dev)
declare -A source_of=([SHMEM_UCX]=shmem/net/ucx/network.cpp [SHMEM_PMIX]=shmem/bootstrap/pmix_client.cpp
  [SHMEM_METRICS]=kv/exchange/metrics_server.cpp
  [SHMEM_MPI]=shmem/bootstrap/mpi/plugin.cpp [GBA_OPENMPI]=openmpi/coll/coll_gba_module.c
  [SHMEM_PYTHON_MODULE]=python/core/module.cpp [GBA_TESTS]=tests/unit/)

builds() {
  grep -qF "$source/${source_of[$1]}" "$work/build/compile_commands.json"
}

set_all() {
  printf -- "-D%s=$1\n" "${switches[@]}"
}

# A machine that has none of the parts.
cat >"$work/pkg-config" <<TEXT
#!/bin/sh
case " \$* " in
  *" ucx "* | *" pmix "* | *" libmicrohttpd "*) [ -e $work/has-all ] || exit 1 ;;
esac
exec $(command -v pkg-config) "\$@"
TEXT
chmod +x "$work/pkg-config"
without=(-DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON -DGBA_MPICC_OPENMPI=/bin/false -DGBA_MPICC_MPICH=/bin/false -DGBA_MPI_ABI_LIBRARY= -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON -DSHMEM_PYTHON=/bin/false)
echo "== AUTO"
configure "${without[@]}" || die "a build with what is required only: $(<"$work/log")"
for switch in "${switches[@]}"; do
  said "${package[$switch]}"
  ! builds "$switch" || die "$switch is built without its package"
done
said "-- Jobs on several nodes left out: UCX is not installed (Debian: libucx-dev)"
said "scripts/install-deps.sh has groups of them"
header="$work/build/generated/shmem/build_parts.hpp"
grep -qF '"SHMEM_UCX", "Jobs on several nodes", R"why(UCX is not installed (Debian: libucx-dev))why"' "$header" ||
  die "shmem_info --build does not say the same: $(<"$header")"
! grep -q -- '-Werror' "$work/build/compile_commands.json" || die "warnings are errors by default"
echo "== ON"
for switch in "${switches[@]}"; do
  ! configure "-D$switch=ON" || die "$switch=ON is ignored"
  said "$switch is ON, but"
  said "${package[$switch]}"
  configure "-D$switch=OFF" || die "$switch=OFF: $(<"$work/log")"
done
! configure -DSHMEM_UCX=perhaps || die "a switch has any value"
said "must be ON, OFF or AUTO"
echo "== a wrapper for MPI without headers"
printf '#!/bin/sh\nexit 1\n' >"$work/mpicc"
chmod +x "$work/mpicc"
configure -DSHMEM_UCX=OFF -DCMAKE_DISABLE_FIND_PACKAGE_MPI=OFF -DGBA_MPICC="$work/mpicc" -DSHMEM_MPI=AUTO || die "$(<"$work/log")"
said "libopenmpi-dev"
! builds SHMEM_MPI || die "the start by MPI is built without headers"
echo "== OFF, on this machine"
touch "$work/has-all"
with=(-UGBA_MPICC -UGBA_MPICC_OPENMPI -UGBA_MPICC_MPICH -UGBA_MPI_ABI_LIBRARY -DCMAKE_DISABLE_FIND_PACKAGE_MPI=OFF -DCMAKE_DISABLE_FIND_PACKAGE_GTest=OFF -USHMEM_PYTHON -UGBA_OPENMPI_HEADERS)
mapfile -t off < <(set_all OFF)
configure "${with[@]}" "${off[@]}" -DSHMEM_TORCH=OFF || die "$(<"$work/log")"
for switch in "${switches[@]}"; do
  ! builds "$switch" || die "$switch=OFF is ignored"
  said "left out: $switch is OFF"
done
! grep -q "scripts/install-deps.sh" "$work/log" || die "CMake asks for what is not wanted: $(<"$work/log")"
echo "== AUTO, on this machine"
mapfile -t auto < <(set_all AUTO)
configure "${auto[@]}" -DGBA_TESTS=OFF -DGBA_WERROR=ON || die "$(<"$work/log")"
for switch in SHMEM_UCX SHMEM_PMIX SHMEM_METRICS SHMEM_MPI GBA_OPENMPI SHMEM_PYTHON_MODULE; do
  builds "$switch" || said "${package[$switch]}"
done
! builds SHMEM_UCX || said "-- Jobs on several nodes built"
grep -q -- '-Werror' "$work/build/compile_commands.json" || die "GBA_WERROR is ignored"
