#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/demo.sh [PE_COUNT]

Installs missing packages (groups build and demo of scripts/install-deps.sh), builds what it needs,
and runs kv_shuffle on PE_COUNT processes (default 4) with a fake barrier accelerator: KV-cache
blocks move between the processes, and every byte is checked.
The last line is "kv_shuffle: PASS"; anything else is a failure and a non-zero exit.
TEXT
}

# Configures as README says, without the strictness of the presets, and builds the named targets.
build() {
  local generator
  generator="$(generator_of "$ROOT/build")"
  cmake -S "$ROOT" -B "$ROOT/build" -G "${generator:-Ninja}" && cmake --build "$ROOT/build" -j "$(nproc)" --target "$@"
}

# Builds only the demonstration and the programs for a look at it; shows the output if that fails.
build_quietly() {
  local log="$ROOT/build/demo-build.log"
  mkdir -p "$ROOT/build"
  echo "Building (the first time takes some minutes; log: build/demo-build.log)"
  build oshrun gba-fake-device kv_shuffle gba_tool shmem_info >"$log" 2>&1 || {
    cat "$log" >&2
    die "the build failed; its output is above and in build/demo-build.log"
  }
}

# What the figures below it mean.
explain() {
  cat <<TEXT
$1 PEs have KV caches of unequal load. kv_shuffle plans which blocks move (--plan balanced), moves them, and compares every byte.
About the figures: the emulated device is a process that shares $(nproc) processors with the $1 PEs, so a barrier takes as long as
the processes wait for each other's turns, and the speed includes that. A switch takes no processor from them.

TEXT
}

handle_help_option "$@"
[[ $# -le 1 ]] || usage_error "unexpected argument: $2"
pe_count="${1:-4}"
[[ "$pe_count" =~ ^[1-9][0-9]{0,2}$ ]] || usage_error "the number of PEs must be 1 to 999, not $pe_count"

install_packages build demo
build_quietly
explain "$pe_count"
output="$ROOT/build/demo-output.log"
"$ROOT/build/bin/oshrun" -n "$pe_count" --gba fake "$ROOT/build/bin/kv_shuffle" --check --plan balanced |
  tee "$output" || die "kv_shuffle failed"
[[ "$(tail -n 1 "$output")" == "kv_shuffle: PASS" ]] || die "kv_shuffle did not end with PASS"
