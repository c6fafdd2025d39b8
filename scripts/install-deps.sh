#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/install-deps.sh [demo | build | test | lint | arm64]...

Installs the Debian packages that are missing for what is named, with sudo if the caller is not
root, and says before which these are:

  demo   the libraries and programs, as scripts/demo.sh builds them
  build  the same with UCX, PMIx, Open MPI and Python, and Debian packages
  test   build, and all tests
  lint   formatting, clang-tidy
  arm64  test, and the tests of the arm64 build

By default test and lint. Does nothing if all are installed.
TEXT
}

DEMO=(cmake g++ libcli11-dev libfmt-dev libnuma-dev libpci-dev libsodium-dev libsystemd-dev libxxhash-dev ninja-build
  nlohmann-json3-dev pkg-config)
BUILD=("${DEMO[@]}" dpkg-dev file git libopenmpi-dev libpmix-dev libucx-dev pybind11-dev python3-dev python3-numpy)
TEST=("${BUILD[@]}" automake ccache clang debootstrap flex googletest groff-base iproute2 libbenchmark-dev
  libclang-rt-dev libgmock-dev libgtest-dev libtool openmpi-bin spin valgrind)
LINT=(clang clang-format clang-tidy)
ARM64=("${TEST[@]}" g++-aarch64-linux-gnu qemu-user-static)
PACKAGES=()

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
  echo "Installing with apt: ${missing[*]}"
  apt update || { sleep "${GBA_APT_RETRY_SECONDS:-5}" && apt update; } ||
    die "apt-get update failed twice; check the network and the sources in /etc/apt"
  apt install --no-install-recommends "${missing[@]}" ||
    die "apt-get could not install: ${missing[*]} (names are those of Debian 12)"
}

handle_help_option "$@"
for group in "${@:-test}"; do
  case "$group" in
    demo) PACKAGES+=("${DEMO[@]}") ;;
    build) PACKAGES+=("${BUILD[@]}") ;;
    test) PACKAGES+=("${TEST[@]}") ;;
    lint) PACKAGES+=("${LINT[@]}") ;;
    arm64) PACKAGES+=("${ARM64[@]}") ;;
    *) usage_error "unexpected argument: $group" ;;
  esac
done
if [[ $# -eq 0 ]]; then
  PACKAGES+=("${LINT[@]}")
fi
mapfile -t PACKAGES < <(printf '%s\n' "${PACKAGES[@]}" | sort -u)
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  die "this is not a Debian system (no apt-get and dpkg-query); install the contents of these packages: ${PACKAGES[*]}"
fi
mapfile -t missing < <(missing_packages)
if [[ ${#missing[@]} -gt 0 ]]; then
  install_missing
fi
