#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make-tool-initramfs.sh CACHE KERNEL GBA RULES OUTPUT: makes the initramfs of the guest that tests the command GBA and
# the udev rules in the folder RULES. scripts/fetch-vm.sh fills CACHE.
set -euo pipefail
cache="$1" kernel="$2" gba="$3" rules="$4" output="$5"
root="$(mktemp -d)"
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
mkdir -p "$root"/{bin,dev,etc,foreign,proc,run,sys,usr/lib/udev/rules.d}
ln -s usr/lib "$root/lib" # as in Debian
ln -s usr/lib "$root/lib64"
install "$(dirname "${BASH_SOURCE[0]}")/guest/tool_init" "$root/init"
install "$cache/busybox/busybox" "$root/bin"
cp -r "$cache/kernel-$kernel/modules" "$root/modules"

# The gba command with the libraries of this machine.
install --strip "$gba" "$root/bin/gba"
ldd "$gba" | grep -o '/[^ ]*' | xargs -I {} install --strip {} "$root/lib"

# udevd with the libraries of QEMU.
install -m 644 "$rules/70-gba.rules" "$root/usr/lib/udev/rules.d"
install "$rules/gba-index" "$root/usr/lib/udev"
install "$cache"/udev/* "$root/foreign"
libraries="$cache/qemu/usr/lib/x86_64-linux-gnu"
for program in udevadm kmod; do
  "$libraries/ld-linux-x86-64.so.2" --library-path "$cache/udev:$libraries" --list "$cache/udev/$program"
done | grep -o "$libraries/[^ ]*" | sort -u | xargs -I {} install {} "$root/foreign"

cat >"$root/etc/passwd" <<'TEXT'
root:x:0:0::/:/bin/sh
worker:x:1000:1000::/:/bin/sh
stranger:x:1001:1001::/:/bin/sh
TEXT
cat >"$root/etc/group" <<'TEXT'
root:x:0:
gba:x:100:worker
worker:x:1000:
stranger:x:1001:
TEXT
cd "$root"
find . | "$cache/busybox/busybox" cpio -o -H newc >"$output" 2>/dev/null
