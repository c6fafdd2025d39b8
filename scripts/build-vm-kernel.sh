#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/vm-cache.sh
source "$(dirname "${BASH_SOURCE[0]}")/vm-cache.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/build-vm-kernel.sh [--check]

Builds a small kernel with iommufd and VFIO's character devices, which Debian's kernels lack, from
Debian's sources and tests/vm/iommufd.config, and puts it into $GBA_VM_CACHE, default
~/.cache/gba-vm, as kernel-iommufd. The tests labelled iommufd boot it, and are skipped without it.
Installs nothing: bc, bison, flex, gcc, libelf-dev, make and xz-utils must be installed already;
ccache is used if available. Fetches 145 MB, and takes 1 GB of disk and five minutes of two
processors. Does nothing if the kernel is there already.

  --check   builds nothing: exits with 0 if the kernel is there
TEXT
}

readonly SOURCE=linux-source-6.12
readonly SUITE=trixie
readonly CONFIG="$ROOT/tests/vm/iommufd.config"
readonly NEEDED=(bc bison flex gcc libelf-dev make xz-utils)
RECIPE="$SOURCE $(cksum <"$CONFIG")"
readonly RECIPE

missing_packages() {
  local package
  for package in "${NEEDED[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q ' installed$' || echo "$package"
  done
}

check_machine() {
  local missing
  if [[ "$(dpkg --print-architecture 2>/dev/null)" != amd64 ]] || ! command -v apt-get >/dev/null; then
    die "only a Debian system on amd64 can build the kernel; a $cache that contains it also works"
  fi
  missing="$(missing_packages)"
  [[ -z "$missing" ]] || die "not installed, but needed: ${missing//$'\n'/ } (as root: apt-get install ${missing//$'\n'/ })"
}

# Leaves out most files that are not compiled: writing and removing them takes as long as compiling the rest.
fetch_source() {
  make_apt
  download "$SOURCE" "$SUITE"
  unpack_all "$work/unpacked"
  tar -xf "$work/unpacked/usr/src/$SOURCE.tar.xz" -C "$work" --exclude="$SOURCE/Documentation/*/*" \
    --exclude="$SOURCE/arch/[!x]*."{c,h,S,dts,dtsi} --exclude="$SOURCE/sound/*.[ch]" \
    --exclude="$SOURCE/drivers/"{gpu,media,net,scsi,staging}"/*/*.[ch]" --exclude="$SOURCE/tools/"{perf,testing} ||
    die "cannot unpack the sources in package $SOURCE"
  [[ -f "$work/$SOURCE/Makefile" ]] || die "the package $SOURCE has no folder $SOURCE with a Makefile"
}

# Writes make's output to a file, and shows the end of it if make fails.
make_kernel() {
  local compiler=gcc
  ! command -v ccache >/dev/null || compiler="ccache gcc"
  nice -n 5 make -C "$work/$SOURCE" -j "$(nproc)" CC="$compiler" "$@" >"$work/output" 2>&1 || {
    tail -n 20 "$work/output" >&2
    die "cannot make ${*: -1} of $SOURCE"
  }
}

# Kconfig silently drops options that it does not know or that others rule out.
configure() {
  local dropped
  make_kernel KCONFIG_ALLCONFIG="$CONFIG" allnoconfig
  dropped="$(grep '^CONFIG_' "$CONFIG" | grep -vxFf "$work/$SOURCE/.config" || true)"
  [[ -z "$dropped" ]] || die "$SOURCE cannot have, of $CONFIG: ${dropped//$'\n'/ }"
}

build() {
  check_machine
  fetch_source
  configure
  make_kernel bzImage
  mkdir -p "$work/kernel-iommufd/modules" # no modules
  cp "$work/$SOURCE/arch/x86/boot/bzImage" "$work/kernel-iommufd/vmlinuz"
  put_into_cache kernel-iommufd
  echo "build-vm-kernel.sh: fetched $((fetched / 1024)) MB and built in $SECONDS s"
}

handle_help_option "$@"
check=
if [[ "${1:-}" == --check ]]; then
  check=yes
  shift
fi
[[ $# == 0 ]] || usage_error "unexpected argument: $1"
if ! has kernel-iommufd; then
  [[ -z "$check" ]] || die "no kernel with iommufd in $cache (scripts/build-vm-kernel.sh builds it)"
  lock_cache
  has kernel-iommufd || build
fi
echo "build-vm-kernel.sh: a kernel with iommufd is in $cache/kernel-iommufd"
