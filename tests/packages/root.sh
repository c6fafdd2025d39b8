# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the tests that work in a bare Debian: makes the root folder and removes it at the end, unless the caller
# names a folder to keep it in. Such a test is skipped (77) without root, debootstrap or a Debian mirror.

# shellcheck disable=SC2034 # used by the scripts that source this
work=
root=
device=
emulator=
kept_objects=()

skip() {
  echo "${0##*/}: skipped: $*"
  exit 77
}

check() {
  local what="$1"
  shift
  if "$@" >"$work/output" 2>&1; then
    echo "ok: $what"
  else
    cat "$work/output"
    echo "failed: $what ($*)"
    exit 1
  fi
}

# Open MPI 5's commands need a home.
inside() {
  chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "${kept_objects[@]}" "$@"
}

# typed COMMAND_LINE: as a user types it in the tree. Open MPI does not like root, which is the only user here, and starts
# no more processes than there are processors.
typed() {
  inside OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
    PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_plm_rsh_agent=false bash -o pipefail -c "cd /src && $1"
}

# Programs such as mpirun look for processors in /sys. Users need a /dev/shm, as every container has one, for the semaphores
# of Python; it must not appear in this machine's own /dev.
mount_kernel() {
  mount -t proc proc "$root/proc"
  mount --bind /sys "$root/sys"
  mount --bind /dev "$root/dev"
  mount --make-private "$root/dev"
  mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
}

unmount_kernel() {
  local mounted
  for mounted in ccache dev/shm dev sys proc; do
    ! mountpoint -q "$root/$mounted" || umount -l "$root/$mounted"
  done
}

# emulate arm64: until the end of the test, the kernel runs programs for arm64 in qemu-user, if it does not already.
emulate() {
  local kernel="$work/binfmt_misc" name=libgba-test-arm64
  [[ "$1" == arm64 ]] || skip "no emulator for $1 is known here"
  [[ "$(dpkg --print-architecture)" != "$1" ]] || return 0
  [[ -x /usr/bin/qemu-aarch64-static ]] || skip "qemu-user is not installed (scripts/install-deps.sh arm64 installs it)"
  mkdir "$kernel"
  mount -t binfmt_misc binfmt_misc "$kernel" 2>/dev/null || skip "this kernel has no binfmt_misc, which runs programs of $1"
  # A test that was killed has left its entry.
  [[ ! -e "$kernel/$name" ]] || echo -1 >"$kernel/$name"
  ! grep -qs '^interpreter .*qemu-aarch64' "$kernel"/* || return 0
  # The beginning of such a program, and which of its bits count. F: the kernel opens the emulator now, not in the root.
  printf '%s' ":$name:M::" '\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:' \
    '\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:' /usr/bin/qemu-aarch64-static:F >"$kernel/register" ||
    skip "the kernel does not accept an emulator for $1"
  emulator="$kernel/$name"
}

clean_up() {
  [[ -z "$device" ]] || {
    kill "$device" 2>/dev/null || true
    wait "$device" || true
  }
  unmount_kernel
  [[ -z "$emulator" ]] || echo -1 >"$emulator"
  ! mountpoint -q "$work/binfmt_misc" || umount "$work/binfmt_misc"
  rm -rf --one-file-system "$work"
}

# The mirror of this machine's own Debian release.
mirror() {
  # shellcheck disable=SC2016 # the names are apt's
  apt-get indextargets --format '$(COMPONENT) $(REPO_URI)' 'Created-By: Packages' | awk '$1 == "main" { print $2; exit }'
}

# make_root SUITE [FOLDER [ARCHITECTURE]]: a bare Debian in $root, which is FOLDER if that is not empty: then it is kept,
# and used again. Another ARCHITECTURE's programs run in qemu-user.
make_root() {
  local from
  [[ "$(id -u)" == 0 ]] || skip "only root can make a root folder"
  command -v debootstrap >/dev/null || skip "debootstrap is not installed (scripts/install-deps.sh soak installs it)"
  from="$(mirror)"
  [[ -n "$from" ]] || skip "apt names no Debian mirror here"
  work="$(mktemp -d)"
  root="${2:-$work/root}"
  trap clean_up EXIT
  mkdir -p "$root"
  [[ -z "${3:-}" ]] || emulate "$3"
  if [[ ! -e "$root/complete" ]]; then
    debootstrap --variant=minbase ${3:+"--arch=$3"} "$1" "$root" "${from%/}" >"$work/debootstrap.log" 2>&1 ||
      skip "debootstrap found no $1 at $from: $(tail -n 1 "$work/debootstrap.log")"
    touch "$root/complete"
  fi
  mount_kernel
  cp /etc/resolv.conf "$root/etc/" 2>/dev/null || true
}

# With GBA_ROOT_CCACHE, a folder with a compiler cache for each SUITE: installs ccache in this root. What is compiled there
# then has the options of the preset release, so the cache may be a link to that of this machine's own builds.
keep_objects() {
  local language
  [[ -n "${GBA_ROOT_CCACHE:-}" ]] || return 0
  mkdir -p "$GBA_ROOT_CCACHE/$1" "$root/ccache"
  mount --bind "$GBA_ROOT_CCACHE/$1" "$root/ccache"
  check "ccache is installed" inside sh -c 'apt-get -q update && apt-get -q -y install --no-install-recommends ccache'
  echo 'set(GBA_WERROR ON CACHE BOOL "")' >"$root/as_release.cmake"
  # ccache distinguishes languages.
  mapfile -t language < <(env | grep -E '^(LANG|LC_[A-Z]+)=' || true)
  kept_objects=("${language[@]}" CCACHE_DIR=/ccache CMAKE_GENERATOR=Ninja CMAKE_TOOLCHAIN_FILE=/as_release.cmake)
}

# copy_tree SOURCE: the sources, without what was built, as /src of the root.
copy_tree() {
  mkdir -p "$root/src"
  find "$root/src" -mindepth 1 -maxdepth 1 ! -name 'build*' -exec rm -rf {} +
  tar -C "$1" --exclude='./build*' --exclude=./.git -c . | tar -C "$root/src" -x
}

# The packages gba-fake-device and gba-tools, installed in the root. The device then serves until the end of the test.
use_device_and_tool() {
  : >"$work/device.log"
  # Not by inside(): the background process must be the program itself, so that it can be killed.
  chroot "$root" /usr/bin/env -i PATH=/usr/bin gba-fake-device --socket /tmp/gba.sock >"$work/device.log" 2>&1 &
  device=$!
  for ((tries = 0; tries < 100; tries++)); do
    grep -q "ready on" "$work/device.log" && break
    sleep 0.1
  done
  check "the fake device serves" grep "ready on" "$work/device.log"
  check "gba info finds it" inside gba info vfio-user:/tmp/gba.sock
  check "gba selftest passes" inside gba selftest vfio-user:/tmp/gba.sock
  check "its systemd unit is installed" test -f "$root/usr/lib/systemd/system/gba-fake-device.service"
  check "the link /dev/gba0 is installed" test -f "$root/usr/lib/tmpfiles.d/gba-fake-device.conf"
  check "the rules are installed" test -x "$root/usr/lib/udev/gba-index"
  check "the group gba exists" inside getent group gba
}
