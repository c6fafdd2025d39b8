#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make-initramfs.sh CACHE SUITE PROGRAM OUTPUT: makes the guest's initramfs. scripts/fetch-vm.sh fills CACHE.
set -euo pipefail
cache="$1" suite="$2" program="$3" output="$4"
root="$(mktemp -d)"
trap 'rm -rf "$root"' EXIT
chmod 755 "$root" # ordinary users need it too
mkdir "$root"/{bin,dev,proc,sys}
cp "$(dirname "${BASH_SOURCE[0]}")/guest/init" "$root/init"
cp "$cache/busybox/busybox" "$root/bin/busybox"
cp "$program" "$root/bin/vm_guest"
cp -r "$cache/kernel-$suite/modules" "$root/modules" # may be empty
chmod +x "$root/init" "$root/bin/vm_guest"
cd "$root"
find . | "$cache/busybox/busybox" cpio -o -H newc >"$output" 2>/dev/null
