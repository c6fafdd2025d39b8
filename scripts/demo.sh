#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/demo.sh [PE_COUNT]

Installs missing packages (group build of scripts/install-deps.sh), builds what it needs into build/,
and runs kv_shuffle on PE_COUNT processes (default 4) with a fake barrier accelerator: KV-cache
blocks move between the processes, and every byte is checked.
The last line is "kv_shuffle: PASS"; anything else is a failure and a non-zero exit.
TEXT
}

# As scripts/test.sh, which uses what is built here, but nothing that only tests need has to be installed.
build() {
  configure_preset release -DGBA_TESTS=AUTO "$@" && build_folder release oshrun gba-fake-device kv_shuffle
}

# Builds only what runs below; shows the output if that fails.
build_quietly() {
  local log="$ROOT/build/demo-build.log"
  mkdir -p "$ROOT/build"
  echo "Building (the first time takes some minutes; log: build/demo-build.log)"
  # A compiler that is not tested may have warnings of its own.
  build >"$log" 2>&1 || build -DGBA_WERROR=OFF >"$log" 2>&1 || {
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

install_packages build
build_quietly
explain "$pe_count"
output="$ROOT/build/demo-output.log"
"$ROOT/build/bin/oshrun" -n "$pe_count" --gba fake "$ROOT/build/bin/kv_shuffle" --check --plan balanced |
  tee "$output" || die "kv_shuffle failed"
[[ "$(tail -n 1 "$output")" == "kv_shuffle: PASS" ]] || die "kv_shuffle did not end with PASS"
