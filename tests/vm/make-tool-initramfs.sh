#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make-tool-initramfs.sh CACHE KERNEL GBA RULES OUTPUT: makes the initramfs of the guest that tests the command GBA and
# the udev rules in the folder RULES.
set -euo pipefail
cache="$1" kernel="$2" gba="$3" rules="$4" output="$5"
# shellcheck source=tests/vm/initramfs.sh
source "$(dirname "${BASH_SOURCE[0]}")/initramfs.sh"
make_root "$cache" "$kernel" tool_init
add_programs "$gba"
add_udev "$rules"
write_image "$output"
