#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the packages for arm64, cross-built, in a bare Debian 12 for arm64, and uses them there in qemu-user: the
# emulated device, the tool, oshcc, oshrun and kv_shuffle. Prints a row of the table in docs/install.md. Skipped (77)
# without root, debootstrap, a Debian mirror, qemu-user, or a kernel that starts it. With PACKAGE_FOLDER it takes packages
# that have been built already, with ROOT_FOLDER a root that an earlier run has left.
set -euo pipefail
# shellcheck source=tests/packages/root.sh
source "$(dirname "${BASH_SOURCE[0]}")/root.sh"

[[ $# -ge 1 && $# -le 3 ]] || {
  echo "Usage: arm64_root.sh SOURCE_FOLDER [PACKAGE_FOLDER [ROOT_FOLDER]]" >&2
  exit 2
}
build="$1/build-package-arm64"

job() {
  check "oshrun -n 2 $*" inside oshrun.libshmem -n 2 --timeout 300 "$@"
}

use_shmem() {
  check "shmem_info tells what it was built for" inside shmem_info --build
  check "a compiler installs" inside apt-get -q -y install --no-install-recommends gcc libc6-dev
  for example in hello ring heat; do
    check "oshcc builds the example $example" inside oshcc.libshmem -O1 -o "/tmp/$example" \
      "/usr/share/doc/libshmem-dev/examples/$example.c"
    job --gba off "/tmp/$example"
  done
  job --gba off kv_shuffle --check --rounds 1 --blocks 8 --page 16
  job --gba fake kv_shuffle --check --plan balanced --rounds 1 --blocks 8 --page 16
  check "barriers of a job use the device" inside GBA_DEVICE=vfio-user:/tmp/gba.sock SHMEM_GBA=require \
    oshrun.libshmem -n 2 --timeout 300 kv_shuffle --check --rounds 1 --blocks 8 --page 16
  # SHMEM_HOST_ID makes each PE a node of its own.
  # shellcheck disable=SC2016 # expanded by that shell
  job --gba off sh -c 'SHMEM_HOST_ID=$OSHRUN_RANK exec kv_shuffle --check --rounds 1 --blocks 8 --page 16'
}

rm -f "$build/tested"
make_root bookworm "${3:-}" arm64
packages="${2:-$work/packages}"
[[ $# -ge 2 ]] || check "the packages are built" "$1/scripts/package.sh" --arm64 "$packages"
rm -rf "$root/packages"
mkdir "$root/packages"
cp "$packages"/*_arm64.deb "$packages"/*_all.deb "$root/packages"
check "the root is for arm64" test "$(inside dpkg --print-architecture)/$(inside uname -m)" == arm64/aarch64
check "all packages install, with what they need" inside sh -c \
  'apt-get -q update && apt-get -q -y install --reinstall --no-install-recommends /packages/*.deb libucx0 libpmix2'
check "programs find their libraries" inside sh -c '! ldd /usr/bin/gba /usr/bin/kv_shuffle /usr/lib/*/libshmem.so.1 | grep "not found"'
use_device_and_tool
use_shmem
check "the packages are removed" inside apt-get -q -y purge '?and(?installed,?or(?name(^gba-),?name(^libgba),?name(^libshmem)))'
check "the packages leave no program behind" inside sh -c '! command -v gba && ! command -v gba-fake-device'
if [[ -d "$build" ]]; then
  echo "\`packages_arm64_root\` passed" >"$build/tested"
  "$1/scripts/versions.sh" "$build"
fi
