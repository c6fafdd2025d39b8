#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The packaged service of gba-fake-device under a real systemd: makes the packages from an existing build, and boots a bare
# Debian 12 as a virtual machine that installs them by dpkg, runs systemd_guest.sh, and switches itself off. Skipped (77)
# without root, debootstrap, a Debian mirror or QEMU (scripts/fetch-vm.sh).
set -euo pipefail
# shellcheck source=tests/packages/root.sh
source "$(dirname "${BASH_SOURCE[0]}")/root.sh"
# shellcheck source=tests/packages/stage.sh
source "$(dirname "${BASH_SOURCE[0]}")/stage.sh"

usage() {
  echo "Usage: systemd.sh SOURCE_FOLDER BUILD_FOLDER"
}

# Only the packages of this list are installed in the guest; their programs are those of the build.
readonly PACKAGES=(libgba0 gba-tools gba-fake-device libshmem1 libshmem-tools)

make_packages() {
  stage_build "$source" "$build" "$staged" && (cd "$staged" && cpack -G DEB)
}

# What the packages depend on besides one another, as an argument of apt-get satisfy.
dependencies() {
  local package
  for package in "${PACKAGES[@]}"; do
    dpkg-deb -f "$staged/$package"_*.deb Depends | tr ',' '\n' | grep -vE "^ *($(IFS='|' && echo "${PACKAGES[*]}")) "
  done | sort -u | paste -sd,
}

add_system() {
  inside apt-get -q update &&
    inside apt-get -q -y install --no-install-recommends systemd-sysv &&
    inside apt-get -q -y satisfy --no-install-recommends "$(dependencies)" &&
    inside useradd --create-home --user-group member &&
    inside useradd --create-home --user-group stranger
}

# A program that is built with the packages of libshmem and makes barriers.
add_program() {
  local deb
  for deb in "$staged"/lib{gba,shmem}*_*.deb; do
    dpkg-deb -x "$deb" "$work/unpacked" || return
  done
  cat >"$work/barriers.c" <<'TEXT'
#include <shmem.h>
#include <stdio.h>
int main(void) {
  shmem_init();
  for (int i = 0; i < 100; ++i) {
    shmem_barrier_all();
  }
  printf("PE %d of %d has made its barriers\n", shmem_my_pe(), shmem_n_pes());
  shmem_finalize();
  return 0;
}
TEXT
  "$work/unpacked/usr/bin/oshcc.libshmem" -o "$root/usr/local/bin/barriers" "$work/barriers.c"
}

add_test() {
  local package
  mkdir "$root/packages"
  for package in "${PACKAGES[@]}"; do
    cp "$staged/$package"_*.deb "$root/packages" || return
  done
  install "$source/tests/packages/systemd_guest.sh" "$root/usr/local/sbin/test-guest" || return
  cat >"$root/etc/systemd/system/test-guest.service" <<'TEXT'
[Unit]
Description=The test, which switches the machine off when it is over
After=systemd-tmpfiles-setup.service
[Service]
ExecStart=/usr/local/sbin/test-guest
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
Environment=HOME=/root
[Install]
WantedBy=multi-user.target
TEXT
  inside systemctl -q enable test-guest.service
}

# The root as an initramfs, without files that the guest does not need. Their folders stay: packages share them.
make_image() {
  unmount_kernel
  (cd "$root" && find . \( -path './usr/share/doc/*' -o -path './usr/share/man/*' -o -path './usr/share/locale/*' -o -path './var/cache/apt/*' \
    -o -path './var/lib/apt/lists/*' \) ! -type d -o -print | "$cache/busybox/busybox" cpio -o -H newc) >"$work/image"
}

# QEMU is of a newer Debian, so its own loader starts it, as in tests/vm/machine.cpp. The limit is that of a busy machine.
boot() {
  local usr="$cache/qemu/usr" libraries="$cache/qemu/usr/lib/x86_64-linux-gnu"
  timeout -k 5 900 "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" "$usr/bin/qemu-system-x86_64" \
    -L "$usr/share/qemu" -L "$usr/share/seabios" -no-user-config -nodefaults -display none -no-reboot -accel tcg -M q35 -smp 2 -m 2G \
    -chardev "file,id=console,path=$work/console" -serial chardev:console -kernel "$cache/kernel-bookworm/vmlinuz" -initrd "$work/image" \
    -append "console=ttyS0 loglevel=1 panic=-1 no_timer_check rdinit=/sbin/init systemd.firstboot=no systemd.getty_auto=no systemd.show_status=no"
}

[[ $# == 2 ]] || {
  usage >&2
  exit 2
}
source="$1"
build="$2"
cache="${GBA_VM_CACHE:-$HOME/.cache/gba-vm}"
make_root bookworm
# Beside the build, since its files are links to those of the build.
staged="$(mktemp -d "$build/systemd.XXXXXX")"
trap 'rm -rf "$staged"; clean_up' EXIT
"$source/scripts/fetch-vm.sh" >"$work/output" 2>&1 || skip "there is no QEMU: $(tail -n 1 "$work/output")"
check "packages are made of the build" make_packages
check "the guest's system is complete" add_system
check "a program is built with the packages" add_program
check "the test is added" add_test
check "the image is made" make_image
check "the guest boots, and switches itself off" boot
tr -d '\r' <"$work/console" | sed -n '/^test-guest: /,$p'
if grep -aq '^failed: ' "$work/console" || ! grep -aq '^test-guest: the end' "$work/console"; then
  tail -n 40 "$work/console"
  echo "failed: the service under systemd"
  exit 1
fi
