#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check.sh holds|fails WORK_FOLDER MEGABYTES DEFINITION...: has spin go through all states of barrier.pml, in that much
# memory. Exits with 0 if it finds no error in any of them or, of a mutant (fails), if it finds one; with 77 where there is
# no spin.
set -euo pipefail

expected="$1" work="$2" megabytes="$3"
shift 3
optimise=-O2
[[ "$expected" == holds ]] || optimise=-O0 # most mutants take longer to compile than to find
model="$(dirname "$(realpath "${BASH_SOURCE[0]}")")/barrier.pml"
command -v spin >/dev/null || {
  echo "skipped: spin is not installed (scripts/install-deps.sh installs it)"
  exit 77
}

mkdir -p "$work"
cd "$work"
rm -f ./*.trail
spin "$@" -a "$model"
# Invalid end states and assertions are all that is asked for: there are no cycles (README.md).
gcc "$optimise" -w -DSAFETY -DCOLLAPSE -DNOFAIR -DMEMLIM="$megabytes" -o pan pan.c
./pan -m100000 | tee output | grep -E '^pan:|errors:|states, stored|actual memory|not completed|too small' || true

if grep -qE 'Search not completed|max search depth too small|out of memory' output && ! grep -q 'errors: [1-9]' output; then
  echo "the search did not reach all states"
  exit 1
fi
if [[ "$expected" == holds ]]; then
  grep -q 'errors: 0' output || {
    echo "What happened, last steps last:"
    spin "$@" -t -p -g -l "$model" | tail -n 200
    exit 1
  }
else
  grep -qE '^pan:.*(assertion violated|invalid end state)' output || {
    echo "the mutant was not found"
    exit 1
  }
fi
