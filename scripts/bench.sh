#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/bench.sh

Installs what is missing, builds, and measures round trips, releases of 1 to 708 members, barriers
and copies, each beside the raw speed of the machine at that moment, how often an idle fake
device wakes up, calls on the symmetric heap beside malloc (and beside Boost.Interprocess where
libboost-dev is installed), how long jobs of 2 to 708 PEs take to start and what memory they need
(and Open MPI's OpenSHMEM beside, where openmpi-bin and libopenmpi-dev are installed: its 256 PEs
take a minute), barriers of every algorithm with 2 to 64 PEs (and Open MPI's beside; picture:
build/barriers.svg), MPI_Barrier with the component coll/gba and without, puts, gets, atomics and
collectives (with Open MPI's OpenSHMEM and, where ucx-utils is installed, UCX beside; picture:
build/rma.svg), kv_shuffle (with memcpy and the same beside; picture: build/kv_shuffle.svg), puts,
gets and collectives between hosts that are network namespaces of this machine (as root; with
Open MPI and ucx_perftest beside; results: build/net.json), and the instructions of libgba's fast
path. Takes about nine minutes; wants two idle cores.
TEXT
}

handle_help_option "$@"
[[ $# == 0 ]] || usage_error "unexpected argument: $1"
build_preset release bench_all bench_barrier bench_heap bench_kv bench_net bench_openmpi bench_rma bench_startup gba-fake-device driver_fast_path
"$ROOT/build/bin/bench_all"
"$ROOT/build/bin/bench_heap" --benchmark_min_time=0.2
"$ROOT/build/bin/bench_startup"
"$ROOT/build/bin/bench_barrier" --svg "$ROOT/build/barriers.svg"
"$ROOT/build/bin/bench_openmpi"
"$ROOT/build/bin/bench_rma" --svg "$ROOT/build/rma.svg"
"$ROOT/build/bin/bench_kv" --svg "$ROOT/build/kv_shuffle.svg"
"$ROOT/build/bin/bench_net" --json "$ROOT/build/net.json" || [[ $? == 77 ]]
"$ROOT/scripts/count-instructions.sh" build
