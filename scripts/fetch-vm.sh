#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/vm-cache.sh
source "$(dirname "${BASH_SOURCE[0]}")/vm-cache.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/fetch-vm.sh [KERNEL...]

Fetches QEMU, busybox, udev and Debian's kernels of the suites KERNEL (default bookworm; trixie and
trixie-backports are newer), which the tests labelled vm need, as Debian packages from the mirror that
this machine's apt uses, and unpacks them into $GBA_VM_CACHE, default ~/.cache/gba-vm. Installs nothing
and does not change apt's state. Files that are there already are not fetched again, so a complete
folder needs no network. With one kernel: 130 MB to fetch, 190 MB of disk.
TEXT
}

readonly RECIPE=1
readonly QEMU_SUITE=trixie-backports
readonly BUSYBOX_SUITE=bookworm
readonly UDEV_SUITE=bookworm
# In loading order; a kernel need not have all of them.
readonly MODULES=(irqbypass iommufd vfio vfio_virqfd vfio_iommu_type1 vfio-pci-core vfio-pci)

# Downloads a package and all its dependencies to $work/packages.
download_with_dependencies() {
  local package="$1" suite="$2"
  apt apt-get -q -y --download-only -t "$suite" install "$package" ||
    die "cannot fetch $package of $suite and its dependencies: $(problems)"
  mkdir -p "$work/packages"
  mv "$work"/apt/cache/archives/*.deb "$work/packages"
}

fetch_qemu() {
  download_with_dependencies qemu-system-x86 "$QEMU_SUITE"
  unpack_all "$work/qemu"
  [[ -x "$work/qemu/usr/bin/qemu-system-x86_64" ]] || die "the package qemu-system-x86 has no qemu-system-x86_64"
  put_into_cache qemu
}

fetch_busybox() {
  download busybox-static "$BUSYBOX_SUITE"
  unpack_all "$work/unpacked"
  mkdir "$work/busybox"
  find "$work/unpacked" -path '*bin/busybox' -exec cp {} "$work/busybox/busybox" \;
  [[ -x "$work/busybox/busybox" ]] || die "the package busybox-static has no busybox"
  put_into_cache busybox
}

# Fetches udevadm, which is also udevd, and kmod, which makes the index of modules that udevd reads. QEMU's libraries
# include all that they need, except one.
fetch_udev() {
  local package file
  for package in udev kmod liblzma5; do
    download "$package" "$UDEV_SUITE"
  done
  unpack_all "$work/unpacked"
  mkdir "$work/udev"
  for file in udevadm kmod liblzma.so.5; do
    find "$work/unpacked" \( -path "*bin/$file" -o -path "*/lib/*/$file" \) -exec cp -L {} "$work/udev/$file" \;
    [[ -s "$work/udev/$file" ]] || die "the packages udev, kmod and liblzma5 of $UDEV_SUITE have no $file"
  done
  rm -r "$work/unpacked"
  put_into_cache udev
}

# The packages that linux-image-amd64 depends on: one or, in newer suites, several.
kernel_packages() {
  local version
  apt apt-cache madison linux-image-amd64 || return 1
  version="$(awk -v suite="$1/main" '$6 == suite { print $3; exit }' "$work/apt/output")"
  apt apt-cache depends --recurse --important "linux-image-amd64=$version" || return 1
  grep -E '^linux-(image|binary|modules)-[0-9]' "$work/apt/output"
}

# The n-th module in the loading order becomes modules/n-NAME.ko.
fetch_kernel() {
  local suite="$1" packages package index module
  packages="$(kernel_packages "$suite")" || die "no kernel package linux-image-amd64 in $suite"
  for package in $packages; do
    download "$package" "$suite"
  done
  mkdir -p "$work/kernel-$suite/modules"
  unpack_all "$work/unpacked"
  find "$work/unpacked" -name 'vmlinuz*' -type f -exec cp {} "$work/kernel-$suite/vmlinuz" \;
  [[ -f "$work/kernel-$suite/vmlinuz" ]] || die "no kernel in the packages ${packages//$'\n'/ }"
  for index in "${!MODULES[@]}"; do
    module="$(find "$work/unpacked" -name "${MODULES[$index]}.ko*")"
    [[ -n "$module" ]] || continue
    cp "$module" "$work/kernel-$suite/modules/$index-${module##*/}"
  done
  find "$work/kernel-$suite/modules" -name '*.xz' -exec "$cache/busybox/busybox" unxz {} +
  rm -r "$work/unpacked"
  put_into_cache "kernel-$suite"
}

fetch_missing() {
  local suite
  if [[ "$(dpkg --print-architecture 2>/dev/null)" != amd64 ]] || ! command -v apt-get >/dev/null; then
    die "only a Debian system on amd64 can fetch QEMU; a $cache that one has filled also works"
  fi
  make_apt
  has qemu || fetch_qemu
  has busybox || fetch_busybox
  has udev || fetch_udev
  for suite in "${kernels[@]}"; do
    has "kernel-$suite" || fetch_kernel "$suite"
  done
  echo "fetch-vm.sh: fetched $((fetched / 1024)) MB of packages in $SECONDS s"
}

all_there() {
  local suite
  has qemu && has busybox && has udev || return 1
  for suite in "${kernels[@]}"; do
    has "kernel-$suite" || return 1
  done
}

handle_help_option "$@"
kernels=("${@:-bookworm}")
for suite in "${kernels[@]}"; do
  [[ "$suite" =~ ^(bookworm|trixie|trixie-backports)$ ]] || usage_error "no kernel of that suite: $suite"
done
if ! all_there; then
  lock_cache
  all_there || fetch_missing
fi
echo "fetch-vm.sh: QEMU, busybox and kernels of ${kernels[*]} are in $cache"
