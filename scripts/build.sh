#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/build.sh [-examples] [PRESET]

Installs missing packages (groups build, options and test of scripts/install-deps.sh), then
configures and builds PRESET: release (default, into build/), debug, asan, tsan, fuzz or soak (into
build-PRESET/).

  -examples   builds only the programs in examples/ and what they run with: the
              libraries, oshrun, the emulated device and kv_shuffle; needs group build
TEXT
}

preset=
examples=
handle_help_option "$@"
for argument in "$@"; do
  case "$argument" in
    -examples | --examples) examples=yes ;;
    -*) usage_error "unknown option: $argument" ;;
    release | debug | asan | tsan | fuzz | soak)
      [[ -z "$preset" ]] || usage_error "more than one preset: $preset and $argument"
      preset="$argument"
      ;;
    *) usage_error "no such preset: $argument" ;;
  esac
done

preset="${preset:-release}"
if [[ -n "$examples" ]]; then
  install_packages build
  # A build folder may have been configured without examples, or with tests.
  configure_preset "$preset" -DGBA_EXAMPLES=ON -DGBA_TESTS=AUTO
  build_folder "$preset" examples
else
  install_packages build options test
  build_preset "$preset"
fi
