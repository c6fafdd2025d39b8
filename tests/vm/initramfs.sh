# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the scripts that make the initramfs of a guest with udev. make_root comes first, write_image last.
source_folder="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

# make_root CACHE KERNEL INIT: an empty system that starts the script guest/INIT. scripts/fetch-vm.sh fills CACHE.
make_root() {
  cache="$1"
  root="$(mktemp -d)"
  trap 'rm -rf "$root"' EXIT
  chmod 755 "$root"
  mkdir -p "$root"/{bin,dev,etc,foreign,proc,run,sys,usr/lib/udev/rules.d}
  ln -s usr/lib "$root/lib" # as in Debian
  ln -s usr/lib "$root/lib64"
  install "$source_folder/guest/$3" "$root/init"
  install -m 644 "$source_folder/guest/commands.sh" "$root"
  install "$source_folder/guest/foreign" "$source_folder/guest/udevadm" "$root/bin"
  install "$cache/busybox/busybox" "$root/bin"
  cp -r "$cache/kernel-$2/modules" "$root/modules"
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
}

# add_libraries_of FILE...: the libraries of this machine that these programs and libraries load.
add_libraries_of() {
  ldd "$@" | grep -o '/[^ ]*\.so[^ :]*' | sort -u | while read -r library; do
    [[ -e "$root/lib/${library##*/}" ]] || install --strip "$library" "$root/lib"
  done
}

add_programs() {
  install --strip "$@" "$root/bin"
  add_libraries_of "$@"
}

# add_udev RULES: udevd, with the libraries of QEMU, and the rules in the folder RULES.
add_udev() {
  local libraries="$cache/qemu/usr/lib/x86_64-linux-gnu" program
  install -m 644 "$1/70-gba.rules" "$root/usr/lib/udev/rules.d"
  install "$1/gba-index" "$root/usr/lib/udev"
  install "$cache"/udev/* "$root/foreign"
  for program in udevadm kmod; do
    "$libraries/ld-linux-x86-64.so.2" --library-path "$cache/udev:$libraries" --list "$cache/udev/$program"
  done | grep -o "$libraries/[^ ]*" | sort -u | xargs -I {} install {} "$root/foreign"
}

# write_image OUTPUT
write_image() {
  (cd "$root" && find . | "$cache/busybox/busybox" cpio -o -H newc 2>/dev/null) >"$1"
}
