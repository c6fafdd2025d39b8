#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/soak.sh [HOURS] [LABEL...]

Runs the tests at full counts (they see GBA_SOAK=1), all of them or those with one of the labels,
repeatedly until HOURS (may be a fraction, default 0) have passed, at least once. Each fuzz target,
label fuzz, takes an hour of each round (GBA_FUZZ_SECONDS changes that), and as many run at the same
time as there are processors. Label arm64 means the unit tests for arm64, in qemu-user. Label flakes
means scripts/flakes.sh, which runs once, after the rounds.
Prints a summary of all rounds and exits with 0 if nothing failed in any of them. Each round's
output is in build-soak/soak-ROUND.log, soak-ROUND-fuzz.log and soak-ROUND-arm64.log.
TEXT
}

hours=0
labels=()
selected=()
fuzz=
arm64=
parse_arguments() {
  handle_help_option "$@"
  if [[ "${1:-}" =~ ^[0-9]+(\.[0-9]+)?$ ]]; then
    hours="$1"
    shift
  fi
  for label in "$@"; do
    [[ "$label" =~ ^[a-z][a-z0-9_]*$ ]] || usage_error "not hours and not a label: $label"
    labels+=("$label")
  done
}

wants() {
  [[ ${#labels[@]} -eq 0 || " ${labels[*]} " == *" $1 "* ]]
}

# fuzz and arm64 are builds of their own, and flakes is a script, not labels of tests in build-soak.
ctest_labels() {
  local label
  for label in "${labels[@]}"; do
    [[ "$label" =~ ^(fuzz|arm64|flakes)$ ]] || echo "$label"
  done
}

wants_others() {
  [[ ${#labels[@]} -eq 0 || -n "$(ctest_labels)" ]]
}

selection() {
  [[ ${#labels[@]} -eq 0 ]] && return
  printf '%s\n' -L "^($(ctest_labels | paste -sd '|'))\$"
}

print_summary() {
  local started="$1" rounds="$2" failed_rounds="$3"
  echo
  echo "== soak: $rounds rounds in $(((SECONDS - started) / 60)) minutes, labels: ${labels[*]:-all}, failed rounds: $failed_rounds"
  echo "Failed, with the number of times:"
  { cat build-soak/soak-*.log 2>/dev/null || true; } | failed_tests | sort | uniq -c | sed 's/^/  /'
  echo "Skipped, with the number of times:"
  { cat build-soak/soak-*.log 2>/dev/null || true; } | skipped_tests | sort | uniq -c | sed 's/^/  /'
}

run_round() {
  local round="$1" failed=0
  if wants_others; then
    ctest --test-dir build-soak --output-on-failure --no-tests=error -j "$(nproc)" "${selected[@]}" 2>&1 |
      tee "build-soak/soak-$round.log" || failed=1
  fi
  if [[ -n "$fuzz" ]]; then
    ctest --test-dir build-fuzz --output-on-failure --no-tests=error -j "$(nproc)" -L '^fuzz$' 2>&1 |
      tee "build-soak/soak-$round-fuzz.log" || failed=1
  fi
  if [[ -n "$arm64" ]]; then
    ctest --test-dir build-arm64 --output-on-failure --no-tests=error -j "$(nproc)" -L '^unit$' 2>&1 |
      tee "build-soak/soak-$round-arm64.log" || failed=1
  fi
  return "$failed"
}

parse_arguments "$@"
cd "$ROOT"
install_packages build options test soak torch
build_preset soak
if wants fuzz && can_fuzz; then
  build_preset fuzz
  fuzz=yes
fi
if wants arm64 && can_cross_compile; then
  build_preset arm64
  arm64=yes
fi
[[ -n "$fuzz$arm64" ]] || wants_others || wants flakes || die "there is nothing to run"
rm -f build-soak/soak-*.log
mapfile -t selected < <(selection)
export GBA_SOAK=1
started=$SECONDS
length="$(awk -v hours="$hours" 'BEGIN { printf "%d", hours * 3600 }')"
rounds=0
failed_rounds=0
while ((rounds == 0 || SECONDS - started < length)); do
  rounds=$((rounds + 1))
  echo "== soak round $rounds"
  run_round "$rounds" || failed_rounds=$((failed_rounds + 1))
done
print_summary "$started" "$rounds" "$failed_rounds"
if wants flakes; then
  env -u GBA_SOAK scripts/flakes.sh || failed_rounds=$((failed_rounds + 1))
fi
((failed_rounds == 0))
