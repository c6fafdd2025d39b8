#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/install-deps.sh [arm64]

Installs the Debian packages that building, testing and linting need, with sudo if the caller is
not root; with arm64 also those that tests of the arm64 build need. Does nothing if all are
installed.
TEXT
}

PACKAGES=(
  automake
  ccache
  clang
  clang-format
  clang-tidy
  cmake
  debootstrap
  dpkg-dev
  file
  flex
  g++
  git
  googletest
  groff-base
  iproute2
  libbenchmark-dev
  libclang-rt-14-dev
  libcli11-dev
  libfmt-dev
  libgmock-dev
  libgtest-dev
  libnuma-dev
  libopenmpi-dev
  libpci-dev
  libpmix-dev
  libsodium-dev
  libsystemd-dev
  libtool
  libucx-dev
  libxxhash-dev
  ninja-build
  nlohmann-json3-dev
  openmpi-bin
  pkg-config
  pybind11-dev
  python3-dev
  python3-numpy
  spin
  valgrind
)

missing_packages() {
  local installed
  # dpkg-query fails if it does not know one of the names, but prints the others.
  installed="$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${PACKAGES[@]}" 2>/dev/null || true)"
  for package in "${PACKAGES[@]}"; do
    grep -qx "$package installed" <<<"$installed" || echo "$package"
  done
}

as_root() {
  if [[ "$(id -u)" == 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "packages must be installed as root, and sudo is not available; as root, run: apt-get install ${missing[*]}"
  fi
}

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
    -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@"
}

install_missing() {
  echo "Installing: ${missing[*]}"
  apt update || { sleep "${GBA_APT_RETRY_SECONDS:-5}" && apt update; } ||
    die "apt-get update failed twice; check the network and the sources in /etc/apt"
  apt install --no-install-recommends "${missing[@]}" ||
    die "apt-get could not install: ${missing[*]} (names are those of Debian 12)"
}

handle_help_option "$@"
case "$*" in
  "") ;;
  arm64) PACKAGES+=(g++-aarch64-linux-gnu qemu-user-static) ;;
  *) usage_error "unexpected argument: $*" ;;
esac
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  die "this is not a Debian system (no apt-get and dpkg-query); install the contents of these packages: ${PACKAGES[*]}"
fi
mapfile -t missing < <(missing_packages)
if [[ ${#missing[@]} -gt 0 ]]; then
  install_missing
fi
