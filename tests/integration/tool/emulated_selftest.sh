#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: emulated_selftest.sh DEVICE GBA EMULATOR...
# Runs gba selftest against gba-fake-device, both of another architecture, in the emulator.
set -euo pipefail

device="$1" gba="$2"
shift 2
folder="$(mktemp -d)"
pid=
trap 'kill "$pid" 2>/dev/null || true; rm -rf "$folder"' EXIT
"$@" "$device" --socket "$folder/gba.sock" >"$folder/log" 2>&1 &
pid=$!
for ((i = 0; i < 600; i++)); do
  ! grep -q "ready on" "$folder/log" || break
  sleep 0.1
done
GBA_DEVICE="$folder/gba.sock" "$@" "$gba" selftest || {
  cat "$folder/log"
  exit 1
}
