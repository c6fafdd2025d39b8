#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/demo.sh [PE_COUNT]

Installs missing packages, builds, and runs kv_shuffle on PE_COUNT processes (default 4) with a
fake barrier accelerator: KV-cache blocks move between the processes, and every byte is checked.
The last line is "kv_shuffle: PASS"; anything else is a failure and a non-zero exit.
TEXT
}

# Builds only what the demonstration needs, and shows the output if that fails.
build_quietly() {
  local log="$ROOT/build/demo-build.log"
  mkdir -p "$ROOT/build"
  echo "Building (the first time takes some minutes; log: build/demo-build.log)"
  build_preset release oshrun gba-fake-device kv_shuffle >"$log" 2>&1 || {
    cat "$log" >&2
    die "the build failed; its output is above and in build/demo-build.log"
  }
}

# A real trace if there is one, else the program's own.
trace_arguments() {
  local trace="$ROOT/../shared/data/mooncake_conversation_2000.jsonl"
  [[ -f "$trace" ]] && printf '%s\n' --trace "$trace"
  return 0
}

handle_help_option "$@"
[[ $# -le 1 ]] || usage_error "unexpected argument: $2"
pe_count="${1:-4}"
[[ "$pe_count" =~ ^[1-9][0-9]{0,2}$ ]] || usage_error "the number of PEs must be 1 to 999, not $pe_count"

build_quietly
mapfile -t trace < <(trace_arguments)
output="$ROOT/build/demo-output.log"
"$ROOT/build/bin/oshrun" -n "$pe_count" --gba fake "$ROOT/build/bin/kv_shuffle" --check "${trace[@]}" |
  tee "$output" || die "kv_shuffle failed"
[[ "$(tail -n 1 "$output")" == "kv_shuffle: PASS" ]] || die "kv_shuffle did not end with PASS"
