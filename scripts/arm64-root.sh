#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/arm64-root.sh FOLDER

Fetches the arm64 packages that a build for arm64 needs (50 MB) and unpacks them into FOLDER, for
the preset arm64 and scripts/package.sh --arm64. Does not change the system, and needs no root.
Does nothing if FOLDER is complete.
TEXT
}

readonly PACKAGES=(
  libcli11-dev
  libfmt-dev
  libgmock-dev
  libgtest-dev
  libmicrohttpd-dev
  libpci-dev
  libpmix-dev
  libsodium-dev
  libstdc++-12-dev
  libsystemd-dev
  libucx-dev
  libxxhash-dev
  nlohmann-json3-dev
)

# apt with its own lists, cache and record of installed packages, which is empty.
apt() {
  apt-get -q -y -o Dir::State="$apt/state" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" \
    -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts="$apt/none" -o Debug::NoLocking=1 \
    -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Acquire::Retries=3 -o APT::Sandbox::User= "$@"
}

handle_help_option "$@"
[[ $# == 1 ]] || usage_error "expected one argument, the folder"
folder="$(realpath -m "$1")"  # apt resolves relative paths from the root
# The package list that the folder was made from; another list makes it again.
if [[ "$(cat "$folder/.packages" 2>/dev/null)" == "${PACKAGES[*]}" ]]; then
  exit 0
fi
from="$(mirror)"
[[ -n "$from" ]] || die "apt names no Debian mirror here (apt-get update)"
rm -rf "$folder"
apt="$folder/.apt"
mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$apt/none"
: >"$apt/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $from bookworm main" >"$apt/sources.list"
apt update >"$apt/log" 2>&1 || die "no arm64 packages from $from: $(tail -n 1 "$apt/log")"
apt install --no-install-recommends --download-only "${PACKAGES[@]}" >>"$apt/log" 2>&1 ||
  die "cannot fetch the arm64 packages: $(tail -n 1 "$apt/log")"
for package in "$apt"/cache/archives/*.deb; do
  dpkg-deb --extract "$package" "$folder"
  # Which package a library is in, for dpkg-shlibdeps, and its version, for scripts/versions.sh.
  dpkg-deb --ctrl-tarfile "$package" | tar -x -O ./shlibs 2>/dev/null >>"$folder/.shlibs" || true
  # shellcheck disable=SC2016 # the names are dpkg-deb's
  dpkg-deb --show --showformat '${Package} ${Version}\n' "$package" >>"$folder/.versions"
done
rm -rf "$apt"
echo "${PACKAGES[*]}" >"$folder/.packages"
