#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/debian-root.sh [--with GROUP[,GROUP...]] RELEASE FOLDER [COMMAND [ARGUMENT...]]

Makes a Debian of another RELEASE (trixie is Debian 13, forky Debian testing) in FOLDER, with the
packages that building and testing need (600 MB to fetch, 3 GB unpacked), beside the system, which
does not change. Does nothing if FOLDER is complete. Then runs COMMAND in it, in this tree, which is
/source there. Compiled objects are kept in ~/.cache/ccache-RELEASE. No process and no mount of
COMMAND outlives it. Needs root, debootstrap and a Debian mirror.

  --with GROUPS   adds the packages of more groups of scripts/install-deps.sh, e.g. torch

Exits with 77, and the reason, if the root cannot be made here, or if the packages of Debian testing
cannot be installed today.
TEXT
}

skip() {
  echo "debian-root.sh: skipped: $*" >&2
  exit 77
}

# Runs a command in the folder, with mounts and processes of its own. The kernel removes all of them when the first of
# these processes ends, or when this script is killed, by whatever signal. The first process is a shell that stays, since
# it waits for orphans. /dev/shm is a new one: tests inside and outside do not find each other's memory.
inside() {
  mkdir -p "$folder/source" "$folder/ccache" "$cache"
  cp /etc/resolv.conf "$folder/etc/" 2>/dev/null || true
  # shellcheck disable=SC2016 # expanded by the inner shell
  setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child bash -euc '
    folder="$1" tree="$2" cache="$3"
    shift 3
    mount --bind "$folder" "$folder"
    mount -t proc proc "$folder/proc"
    mount --rbind /sys "$folder/sys"
    mount --rbind /dev "$folder/dev"
    mount -t tmpfs -o mode=1777 tmpfs "$folder/dev/shm"
    mount --bind "$tree" "$folder/source"
    mount --bind "$cache" "$folder/ccache"
    cd "$folder"
    pivot_root . . # not chroot: nsenter goes to the root of a mount namespace
    umount -l .
    /usr/bin/env -i -C /source PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      HOME=/root LC_ALL=C.UTF-8 CCACHE_DIR=/ccache "$@"
    exit 0' bash "$folder" "$ROOT" "$cache" "$@"
}

# What debootstrap does is the same for all releases since Debian 12, but an older debootstrap lacks the newest names.
bootstrap_script() {
  local scripts=/usr/share/debootstrap/scripts
  [[ -f "$scripts/$release" ]] && echo "$scripts/$release" || echo "$scripts/sid"
}

make_root() {
  local from
  from="$(mirror)"
  [[ -n "$from" ]] || skip "apt names no Debian mirror here (apt-get update)"
  rm -rf --one-file-system "$folder.part"
  debootstrap --variant=minbase "$release" "$folder.part" "$from" "$(bootstrap_script)" >"$log" 2>&1 ||
    skip "debootstrap cannot make a $release from $from: $(tail -n 1 "$log")"
  # A mirror that lags, or a copy of one, has an index of Debian testing that has expired. Signatures are checked still.
  echo 'Acquire::Check-Valid-Until "false";' >"$folder.part/etc/apt/apt.conf.d/90old-mirror"
  mv "$folder.part" "$folder"
}

# Debian testing changes each day, and is not always complete.
cannot_install() {
  local problem
  problem="the packages cannot be installed in $folder (remove it to start again): $(tail -n 1 "$log")"
  [[ "$(<"$folder/etc/debian_version")" != */sid ]] || skip "Debian testing is broken today: $problem"
  die "$problem"
}

handle_help_option "$@"
groups=(build options test)
if [[ "${1:-}" == --with ]]; then
  [[ -n "${2:-}" ]] || usage_error "--with needs groups of packages"
  IFS=, read -r -a more <<<"$2"
  groups+=("${more[@]}")
  shift 2
fi
[[ $# -ge 2 ]] || usage_error "expected a release and a folder"
release="$1"
folder="$(realpath -m "$2")"
shift 2
[[ "$release" =~ ^[a-z]+$ ]] || usage_error "not the name of a release: $release"
[[ "$(id -u)" == 0 ]] || skip "only root can make a root folder"
command -v debootstrap >/dev/null || skip "debootstrap is not installed (scripts/install-deps.sh test installs it)"
unshare --mount --pid --fork true 2>/dev/null || skip "this machine does not permit mount and process namespaces"
log="$folder.log"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/ccache-$release"
mkdir -p "${folder%/*}"
exec 8>"$folder.lock"
flock 8
[[ -d "$folder" ]] || make_root
inside scripts/install-deps.sh "${groups[@]}" >>"$log" 2>&1 || cannot_install
flock -u 8
exec 8>&-
[[ $# == 0 ]] || inside "$@"
