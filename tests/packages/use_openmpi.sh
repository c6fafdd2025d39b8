#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs an MPI program with and without the components of a folder, and checks what does its barriers. Uses mpirun, mpicc
# and gba-fake-device from PATH. Without mpirun or mpicc it only prints that nothing was tested.
set -euo pipefail

[[ $# == 2 ]] || {
  echo "Usage: use_openmpi.sh WORK_FOLDER COMPONENT_FOLDER" >&2
  exit 2
}
mkdir -p "$1"
cd "$1"
components="$2"

die() {
  echo "use_openmpi.sh: $*"
  exit 1
}

for program in mpirun mpicc ompi_info; do
  command -v "$program" >/dev/null || {
    echo "use_openmpi.sh: nothing was tested: $program is not installed (Debian: openmpi-bin, libopenmpi-dev)"
    exit 0
  }
done
device=
trap '[[ -z "$device" ]] || kill "$device"' EXIT

cat >barriers.c <<'TEXT'
#include <mpi.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  for (int i = 0; i < 10; ++i) MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Finalize();
}
TEXT
mpicc -o barriers barriers.c
: >device.log
gba-fake-device --socket "$PWD/gba.sock" >device.log 2>&1 &
device=$!
for ((tries = 0; tries < 600; tries++)); do
  ! grep -q "ready on" device.log || break
  sleep 0.1
done
grep -q "ready on" device.log || die "the device is not ready after a minute: $(cat device.log)"
unset "${!OMPI_MCA_@}"
export TMPDIR="$PWD" GBA_DEVICE="vfio-user:$PWD/gba.sock" OMPI_MCA_coll_gba_verbose=5
# The machine may have no other network, of which Open MPI 5 complains.
export OMPI_MCA_btl_tcp_if_include=lo
export OMPI_MCA_plm_rsh_agent=false OMPI_MCA_btl_vader_backing_directory="$PWD"

# use WHAT PATTERN: runs the program, whose output must match PATTERN.
use() {
  local output
  output="$(timeout -k 1 300 mpirun --allow-run-as-root --oversubscribe -np 2 ./barriers 2>&1)" || die "$1: $output"
  # shellcheck disable=SC2053 # a pattern
  [[ "$output" == $2 ]] || die "$1: mpirun printed \"$output\", not $2"
}

use "without the variable" ""
export OMPI_MCA_mca_base_component_path="$components:SYS_DEFAULT"
use "with the variable" "*MPI_COMM_WORLD: the device does the barriers*"
OMPI_MCA_coll_gba_disable=1 use "turned off" "*coll:gba: disabled*"

# shown PROGRAM FRAMEWORK PARAMETER...: PROGRAM must show these parameters of FRAMEWORK/gba.
shown() {
  local output name
  output="$("$1" --param "$2" gba --level 9)" || die "$1 failed"
  for name in "${@:3}"; do
    [[ "$output" == *"parameter \"$2_gba_$name\""* ]] || die "$1 does not show $2_gba_$name"
  done
}

shown ompi_info coll priority disable device_path min_comm_size timeout verbose spin
if [[ -e "$components/mca_scoll_gba.so" ]]; then
  shown oshmem_info scoll priority disable device_path min_group_size timeout verbose spin
fi
