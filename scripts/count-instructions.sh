#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/count-instructions.sh BUILD_DIR [MOST]

Counts, with callgrind, the instructions of libgba in a barrier in which no member has to wait, over a
fake device that does not sleep: one gba_group_arrive and one successful gba_group_test; then one
gba_barrier_arrive and one gba_barrier_test. Exits with 1 if the first two take more than MOST (default 60)
instructions, or the others more than MOST + 10, and with 77 without valgrind.
TEXT
}

handle_help_option "$@"
[[ $# == 1 || $# == 2 ]] || usage_error "expected one or two arguments"
build="$(cd "$1" && pwd)"
readonly most="${2:-60}" rounds=1000
command -v valgrind >/dev/null || {
  echo "count-instructions.sh: skipped, valgrind is not installed (scripts/install-deps.sh test installs it)"
  exit 77
}
work="$(mktemp -d)"
device=
clean_up() {
  [[ -z "$device" ]] || {
    kill "$device" 2>/dev/null || true
    wait "$device" || true
  }
  rm -rf "$work"
}
trap clean_up EXIT
"$build/bin/gba-fake-device" --socket "$work/gba.sock" --idle-us 100000000 >"$work/device.log" 2>&1 &
device=$!
for ((tries = 0; tries < 600; tries++)); do
  grep -q "ready on" "$work/device.log" && break
  sleep 0.05
done
grep -q "ready on" "$work/device.log" || die "the fake device does not start: $(cat "$work/device.log")"

# count NAME MOST [ARGUMENT]: the instructions of NAME_arrive and NAME_test, without those between the two calls.
count() {
  local name="$1" limit="$2" total each
  shift 2
  rm -f "$work/out"
  valgrind --tool=callgrind --collect-atstart=no --toggle-collect="${name}_arrive" --toggle-collect="${name}_test" \
    --callgrind-out-file="$work/out" "$build/tests/driver_fast_path" "vfio-user:$work/gba.sock" "$rounds" "$@" \
    >"$work/valgrind.log" 2>&1 || die "valgrind failed: $(cat "$work/valgrind.log")"
  total="$(sed -nE 's/^(summary|totals): ([0-9]+)$/\2/p' "$work/out" | head -n 1)"
  [[ -n "$total" ]] || die "callgrind counted nothing: $(cat "$work/valgrind.log")"
  each=$(((total + rounds - 1) / rounds))
  echo "libgba: ${name}_arrive and successful ${name}_test: $each instructions ($total in $rounds rounds, callgrind; at most $limit)"
  ((each <= limit && each > 0))
}

count gba_group "$most"
count gba_barrier $((most + 10)) lossless
