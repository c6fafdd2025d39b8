#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/flakes.sh [N] [CTEST_ARGUMENT...]

Runs the whole suite (all tests in build/ but those labelled soak, or those that CTEST_ARGUMENTs select)
N times (default 20), three times as many tests at a time as there are processors, beside a busy loop
for each processor: a test that measures time, or waits for an amount of it, fails sooner or later.
Builds first. Prints what did not pass each time, and exits with 0 if everything did. The output of
each run is in build/flakes/.
TEXT
}

handle_help_option "$@"
runs=20
if [[ "${1:-}" =~ ^[1-9][0-9]*$ ]]; then
  runs="$1"
  shift
fi
[[ "${1:--}" == -* ]] || usage_error "not a number of runs: $1"
selection=("$@")
[[ " $* " == *" -LE "* ]] || selection+=(-LE '^soak$')

install_packages build options test
build_preset release >/dev/null
rm -rf build/flakes
mkdir -p build/flakes
bad=
loops=()
trap 'kill "${loops[@]}" 2>/dev/null || true' EXIT
for ((i = 0; i < $(nproc); i++)); do
  # The kernel ends it with this script, however that ends.
  setpriv --pdeathsig KILL bash -c 'while :; do :; done' &
  loops+=($!)
done
for ((run = 1; run <= runs; run++)); do
  status=passed
  ctest --test-dir build --output-on-failure --no-tests=error -j $(($(nproc) * 3)) "${selection[@]}" \
    >"build/flakes/$run.log" 2>&1 || {
    status=failed
    bad=yes
  }
  echo "run $run of $runs: $status after $((SECONDS / 60)) minutes"
done
failed="$(failed_tests build/flakes/*.log | sort | uniq -c | sort -rn)"
echo "Did not pass each time of $runs, with the number of failures:"
echo "${failed:-  none}"
skipped_tests build/flakes/*.log | sort -u | sed 's/^/skipped: /'
[[ -z "$bad" ]]
