#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/bench.sh

Installs missing packages, builds, and runs all benchmarks, which takes about ten minutes and
needs two idle cores. Each figure is compared with the raw speed of the machine at that moment, and
with other libraries if these are installed. It measures
  - round trips, releases of 1 to 708 members, barriers and copies, and how often an idle fake
    device wakes up (bench_all),
  - calls on the symmetric heap, malloc and Boost.Interprocess (libboost-dev; bench_heap),
  - the start and the memory of jobs of 2 to 708 PEs, with Open MPI's OpenSHMEM (openmpi-bin,
    libopenmpi-dev: its 256 PEs take a minute; bench_startup),
  - barriers of every algorithm with 2 to 64 PEs, with Open MPI's (build/barriers.svg; bench_barrier),
  - the cost of losing the device and of its return (bench_loss),
  - calls beside one, two and four processes that compute, with Open MPI's OpenSHMEM
    (build/neighbours.svg; bench_neighbours),
  - MPI_Barrier with and without the component coll/gba (bench_openmpi),
  - puts, gets, atomics and collectives, with Open MPI's OpenSHMEM and UCX (ucx-utils;
    build/rma.svg; bench_rma),
  - kv_shuffle, with memcpy and the same two (build/kv_shuffle.svg; bench_kv),
  - pulls of an exchange, with memcpy, UCX and published figures (build/kv_exchange.svg;
    bench_exchange),
  - puts, gets and collectives between nodes that are network namespaces of this machine, with
    Open MPI and ucx_perftest (needs root; build/net.json; bench_net),
  - the instructions of libgba's fast path.
TEXT
}

handle_help_option "$@"
[[ $# == 0 ]] || usage_error "unexpected argument: $1"
install_packages build options test
build_preset release bench_all bench_barrier bench_exchange bench_heap bench_kv bench_loss bench_neighbours bench_net bench_openmpi bench_rma bench_startup gba-fake-device driver_fast_path
"$ROOT/build/bin/bench_all"
"$ROOT/build/bin/bench_heap" --benchmark_min_time=0.2
"$ROOT/build/bin/bench_startup"
"$ROOT/build/bin/bench_barrier" --svg "$ROOT/build/barriers.svg"
"$ROOT/build/bin/bench_loss"
"$ROOT/build/bin/bench_neighbours" 2 4 --neighbours 0,1,2,4 --svg "$ROOT/build/neighbours.svg"
"$ROOT/build/bin/bench_openmpi"
"$ROOT/build/bin/bench_rma" 2 4 8 16 --svg "$ROOT/build/rma.svg" --svg-collectives "$ROOT/build/collectives.svg"
"$ROOT/build/bin/bench_kv" --svg "$ROOT/build/kv_shuffle.svg"
"$ROOT/build/bin/bench_exchange" --svg "$ROOT/build/kv_exchange.svg"
"$ROOT/build/bin/bench_net" --json "$ROOT/build/net.json" || [[ $? == 77 ]]
"$ROOT/scripts/count-instructions.sh" build
