#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check.sh MODEL holds|ends|fails WORK_FOLDER MEGABYTES DEFINITION...: explores all states of MODEL.pml with spin, in
# up to that much memory. Exits with 0 if no assertion fails and all processes come to rest (holds), if there is no
# cycle (ends), or, for a mutant, if an error is found (fails); with 77 if spin is not installed.
set -euo pipefail

model="$(dirname "$(realpath "${BASH_SOURCE[0]}")")/$1.pml" expected="$2" work="$3" megabytes="$4"
shift 4
# Optimisation and compressed states pay off in long searches only: in short ones compiling costs more than it saves.
options=(-O0)
((megabytes <= 2000)) || options=(-O2 -DCOLLAPSE)
command -v spin >/dev/null || {
  echo "skipped: spin is not installed (scripts/install-deps.sh test installs it)"
  exit 77
}

mkdir -p "$work"
cd "$work"
rm -f ./*.trail
spin "$@" -a "$model"
properties=(-DSAFETY)
arguments=()
if [[ "$expected" == ends ]]; then
  properties=(-DNP) # finds any cycle: no state is marked as progress
  arguments=(-l)
fi
# Compiling takes a third of the time of all checks; the source is that of the last run unless the model has changed.
compiler=(gcc)
! command -v ccache >/dev/null || compiler=(ccache gcc)
"${compiler[@]}" "${options[@]}" -w "${properties[@]}" -DNOFAIR -DMEMLIM="$megabytes" -c -o pan.o pan.c
gcc -o pan pan.o
./pan -m100000 "${arguments[@]}" | tee output | grep -E '^pan:|errors:|states, stored|actual memory|not completed|too small' || true

if grep -qE 'Search not completed|max search depth too small|out of memory' output && ! grep -q 'errors: [1-9]' output; then
  echo "the search did not reach all states"
  exit 1
fi
if [[ "$expected" != fails ]]; then
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
