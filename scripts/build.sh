#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/build.sh [-examples] [PRESET]

Installs what is missing, then configures and builds PRESET: release (default, into build/),
debug, asan, tsan, fuzz or soak (into build-PRESET/).

  -examples   nothing more: the programs in examples/ are built always
TEXT
}

preset=
handle_help_option "$@"
for argument in "$@"; do
  case "$argument" in
    -examples | --examples) ;;
    -*) usage_error "unknown option: $argument" ;;
    release | debug | asan | tsan | fuzz | soak)
      [[ -z "$preset" ]] || usage_error "more than one preset: $preset and $argument"
      preset="$argument"
      ;;
    *) usage_error "no such preset: $argument" ;;
  esac
done

"$ROOT/scripts/install-deps.sh"
cd "$ROOT"
cmake --preset "${preset:-release}"
cmake --build --preset "${preset:-release}"
