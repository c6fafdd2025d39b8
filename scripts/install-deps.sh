#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/install-deps.sh [--print] [GROUP...]

Installs the packages of each GROUP that are missing, with the names of Debian 12 to 14; by default
build, options and demo, with which everything that README.md shows works, but for PyTorch: add torch.
Prints the names first, and uses sudo if the caller is not root. Does nothing if all are installed.

  build     compiler, CMake and libraries, without which nothing can be built
  options   what adds an optional part: UCX, PMIx, Open MPI, MPICH, libmicrohttpd and Python
  demo      what scripts/demo.sh and README's examples use besides build
  test      what tests, fuzz targets and benchmarks use besides build and options
  soak      what tests labelled soak use besides test
  lint      what the target lint uses
  arm64     what the build for arm64 and its tests use
  package   what scripts/package.sh uses besides build and options
  wheel     what scripts/wheel.sh uses besides build and options
  torch     PyTorch, for the backend of torch.distributed, and what build, options and demo have; large

  --print   prints the names of all packages of the groups, and installs nothing
TEXT
}

readonly GROUPS_OF_PACKAGES=" build options demo test soak lint arm64 package wheel torch "

packages_of() {
  case "$1" in
    build)
      # ccache: what is built before the tests install it would be built again.
      echo ccache cmake g++ libcli11-dev libfmt-dev libpci-dev libsodium-dev libsystemd-dev libxxhash-dev make \
        ninja-build nlohmann-json3-dev pkg-config
      ;;
    options) echo libmicrohttpd-dev libmpich-dev libopenmpi-dev libpmix-dev libucx-dev pybind11-dev python3-dev python3-numpy ;;
    demo) echo libpmix-dev openmpi-bin ;;
    test)
      echo clang debootstrap dpkg-dev file git googletest groff-base iproute2 libbenchmark-dev \
        "$(fuzzer_library)" libgmock-dev libgtest-dev openmpi-bin python3 python3-pip "$(packages_of wheel)" spin valgrind
      ;;
    soak)
      echo automake flex libtool munge rpm slurm-client slurmctld slurmd slurm-wlm-basic-plugins
      ;;
    lint) echo clang clang-format clang-tidy git python3 shellcheck ;;
    arm64) echo g++-aarch64-linux-gnu qemu-user-static ;;
    package) echo binutils dpkg-dev file rpm ;;
    wheel) echo python3-setuptools python3-venv python3-wheel ;;
    torch) echo "$(packages_of build) $(packages_of options) $(packages_of demo)" libtorch-dev python3-torch ;;
  esac
}

# libFuzzer's package has the number of the release's own clang in its name: 14 in Debian 12, 19 in Debian 13.
fuzzer_library() {
  local clang
  clang="$(dpkg-query -W -f='${Depends}' clang 2>/dev/null || true)"
  [[ -n "$clang" ]] || clang="$(apt-cache show clang 2>/dev/null | grep '^Depends:' || true)"
  if [[ "$clang" =~ clang-([0-9]+) ]]; then
    echo "libclang-rt-${BASH_REMATCH[1]}-dev"
  else
    echo libclang-rt-dev
  fi
}

# The packages of all groups, each once.
all_packages() {
  local group package
  local -A printed=()
  for group in "${groups[@]}"; do
    for package in $(packages_of "$group"); do
      [[ -n "${printed[$package]:-}" ]] || echo "$package"
      printed[$package]=yes
    done
  done
}

missing_packages() {
  local installed package
  local -a packages
  mapfile -t packages < <(all_packages)
  # dpkg-query fails if it does not know one of the names, but prints the others.
  installed=$'\n'"$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null || true)"$'\n'
  for package in "${packages[@]}"; do
    [[ "$installed" == *$'\n'"$package installed"$'\n'* ]] || echo "$package"
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
  echo "Installing with apt-get, for ${groups[*]}: ${missing[*]}"
  apt update || { sleep "${GBA_APT_RETRY_SECONDS:-5}" && apt update; } ||
    die "apt-get update failed twice; check the network and the sources in /etc/apt"
  # Before the update, apt may not have known the release's clang.
  mapfile -t missing < <(missing_packages)
  apt install --no-install-recommends "${missing[@]}" ||
    die "apt-get could not install: ${missing[*]} (names are those of Debian 12 to 14)"
}

handle_help_option "$@"
print=
groups=()
for argument in "$@"; do
  if [[ "$argument" == --print ]]; then
    print=yes
  else
    [[ "$GROUPS_OF_PACKAGES" == *" $argument "* ]] || usage_error "no such group: $argument"
    groups+=("$argument")
  fi
done
[[ ${#groups[@]} -gt 0 ]] || groups=(build options demo)
if [[ -n "$print" ]]; then
  all_packages
  exit
fi
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  mapfile -t missing < <(all_packages)
  die "this is not a Debian system (no apt-get and dpkg-query); install the contents of these packages: ${missing[*]}"
fi
mapfile -t missing < <(missing_packages)
if [[ ${#missing[@]} -gt 0 ]]; then
  install_missing
fi
