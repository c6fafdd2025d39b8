# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the tests that work in a bare Debian: makes the root folder and removes it at the end. Such a test is
# skipped (77) without root, debootstrap or a Debian mirror.

# shellcheck disable=SC2034 # used by the scripts that source this
work=
device=
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

inside() {
  chroot "$work/root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "${kept_objects[@]}" "$@"
}

# Programs such as mpirun look for processors in /sys.
mount_kernel() {
  mount -t proc proc "$work/root/proc"
  mount --bind /sys "$work/root/sys"
  mount --bind /dev "$work/root/dev"
}

unmount_kernel() {
  local mounted
  for mounted in ccache dev sys proc; do
    ! mountpoint -q "$work/root/$mounted" || umount -l "$work/root/$mounted"
  done
}

clean_up() {
  [[ -z "$device" ]] || {
    kill "$device" 2>/dev/null || true
    wait "$device" || true
  }
  unmount_kernel
  rm -rf --one-file-system "$work"
}

# The mirror of this machine's own Debian release.
mirror() {
  # shellcheck disable=SC2016 # the names are apt's
  apt-get indextargets --format '$(COMPONENT) $(REPO_URI)' 'Created-By: Packages' | awk '$1 == "main" { print $2; exit }'
}

# make_root SUITE: a bare Debian in $work/root.
make_root() {
  local from
  [[ "$(id -u)" == 0 ]] || skip "only root can make a root folder"
  command -v debootstrap >/dev/null || skip "debootstrap is not installed (scripts/install-deps.sh soak installs it)"
  from="$(mirror)"
  [[ -n "$from" ]] || skip "apt names no Debian mirror here"
  work="$(mktemp -d)"
  trap clean_up EXIT
  mkdir "$work/root"
  debootstrap --variant=minbase "$1" "$work/root" "${from%/}" >"$work/debootstrap.log" 2>&1 ||
    skip "debootstrap found no $1 at $from: $(tail -n 1 "$work/debootstrap.log")"
  mount_kernel
  cp /etc/resolv.conf "$work/root/etc/" 2>/dev/null || true
}

# With GBA_ROOT_CCACHE, a folder for the objects that are compiled in roots: installs ccache in this one.
keep_objects() {
  [[ -n "${GBA_ROOT_CCACHE:-}" ]] || return 0
  mkdir -p "$GBA_ROOT_CCACHE/$1" "$work/root/ccache"
  mount --bind "$GBA_ROOT_CCACHE/$1" "$work/root/ccache"
  check "ccache is installed" inside sh -c 'apt-get -q update && apt-get -q -y install --no-install-recommends ccache'
  kept_objects=(CCACHE_DIR=/ccache)
}

# copy_tree SOURCE: the sources, without what was built, as /tree of the root.
copy_tree() {
  mkdir "$work/root/tree"
  tar -C "$1" --exclude='./build*' --exclude=./.git -c . | tar -C "$work/root/tree" -x
}
