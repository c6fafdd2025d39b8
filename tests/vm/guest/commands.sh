# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# Sourced by the first process of a guest with udev: mounts what programs need, and defines commands of the guest.
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs devtmpfs /dev
/bin/busybox mount -t tmpfs tmpfs /run
/bin/busybox --install -s /bin
export PATH=/bin

# say NAME COMMAND: prints the output of COMMAND between "gba-vm: begin NAME" and "gba-vm: end CODE". The host checks it.
say() {
  echo "gba-vm: begin $1"
  shift
  "$@" 2>&1
  echo "gba-vm: end $?"
}

# as USER KIB COMMAND: runs COMMAND with a limit of locked memory.
as() {
  user="$1" limit="$2"
  shift 2
  su "$user" -c "ulimit -l $limit; $*"
}

modprobe() { foreign modprobe kmod "$@"; }

start_udevd() {
  if udevd_can_run; then foreign systemd-udevd udevadm --daemon; fi
}
# A small kernel may lack inotify, which udevd needs: then udevadm (this folder's) applies the rules.
udevd_can_run() { [ -e /proc/sys/fs/inotify ]; }
settle() {
  [ ! -e /run/udev/control ] || udevadm settle --timeout=60
}

# The nodes and names of GBAs.
nodes() {
  for node in /dev/iommu /dev/vfio/[0-9]* /dev/vfio/devices/*; do
    [ ! -e "$node" ] || stat -c '%n %G %a' "$node"
  done
  for name in /dev/gba*; do
    [ ! -e "$name" ] || echo "$name $(readlink -f "$name")"
  done
}

# Where udevd and modprobe look for the modules of /modules, with an index.
install_modules() {
  modules="/lib/modules/$(uname -r)"
  mkdir -p "$modules"
  for module in /modules/*.ko; do
    [ ! -e "$module" ] || cp "$module" "$modules/${module#*/[0-9]-}"
  done
  foreign depmod kmod 2>/dev/null
}
