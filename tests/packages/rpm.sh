#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the RPM packages from an existing build and checks what they have and need. Skipped (77) without rpmbuild.
set -euo pipefail
# shellcheck source=tests/packages/stage.sh
source "$(dirname "${BASH_SOURCE[0]}")/stage.sh"

[[ $# == 2 ]] || {
  echo "Usage: rpm.sh SOURCE_FOLDER BUILD_FOLDER" >&2
  exit 2
}
command -v rpmbuild >/dev/null || {
  echo "rpm.sh: skipped: there is no rpmbuild (scripts/install-deps.sh soak installs it)"
  exit 77
}
work="$(mktemp -d "$2/rpm.XXXXXX")"
trap 'rm -rf "$work"' EXIT

die() {
  echo "rpm.sh: $*"
  exit 1
}

# ask OPTION PACKAGE: what rpm says about the package.
ask() {
  rpm -qp "$1" "$work"/build/"$2"-[0-9]*.rpm 2>/dev/null
}

has() {
  grep -qE "$2" <<<"$(ask -l "$1")" || die "$1 has no file $2: $(ask -l "$1")"
}

needs() {
  grep -qE "$2" <<<"$(ask --requires "$1")" || die "$1 does not need $2: $(ask --requires "$1")"
}

stage_build "$1" "$2" "$work/build" -DCMAKE_INSTALL_LIBDIR=lib64 -DSHMEM_PYTHON_FOLDER=lib/python3/site-packages >"$work/log" 2>&1 ||
  die "$(<"$work/log")"
(cd "$work/build" && cpack -G RPM >"$work/log" 2>&1) || die "$(<"$work/log")"

echo "== contents"
has libgba0 '^/usr/lib64/libgba\.so\.0'
has libgba-devel '^/usr/include/gba/gba\.h$'
has gba-udev '^/usr/lib/udev/rules\.d/70-gba\.rules$'
has gba-tools '^/usr/bin/gba$'
has gba-fake-device '^/usr/lib/systemd/system/gba-fake-device\.service$'
has libshmem1 '^/usr/lib64/libshmem\.so\.1'
has libshmem1 '^/usr/lib64/libkvexchange\.so\.1'
has libshmem-tools '^/usr/bin/kv_shuffle$'
has libshmem-tools '^/usr/lib64/libshmem/tuning/bench_worker$'
has libshmem-devel '^/usr/lib64/libshmem/bin/oshcc$'
has libshmem-doc '/docs/deployment\.md$'
for package in "$work"/build/*.rpm; do
  files="$(rpm -qpl "$package" 2>/dev/null)"
  for licence in LICENSE NOTICE copyright; do
    grep -qE "^/usr/share/licenses/[^/]*/$licence$" <<<"$files" || die "$package has no $licence"
  done
  ! grep -qxE '/usr|/usr/(bin|lib|lib64|share|include|share/man|lib/systemd|lib/udev/rules\.d)' <<<"$files" ||
    die "$package owns folders of the system: $files"
done
licences() {
  [[ "$(rpm -qp --qf '%{license}' "$work"/build/"$1"-[0-9]*.rpm 2>/dev/null)" == "$2" ]] || die "$1 has another licence than $2"
}
licences gba-tools "Apache-2.0 AND BSD-3-Clause AND GPL-2.0-or-later AND MIT"
licences libshmem1 "Apache-2.0 AND BSD-2-Clause AND MIT"
licences libshmem-devel Apache-2.0
duplicates="$(for package in "$work"/build/*.rpm; do rpm -qpl "$package" 2>/dev/null; done | grep -v -e '^/usr/lib/.build-id' -e '^/usr/lib64/libshmem' -e '/libshmem$' | sort | uniq -d)"
[[ -z "$duplicates" ]] || die "two packages have $duplicates"

echo "== needs"
needs libshmem1 '^libgba0 = '
needs libshmem1 '^libsodium\.so'
needs libshmem-devel '^libshmem-tools = '
needs gba-tools '^libpci\.so'
grep -qx libgba <<<"$(ask --obsoletes libgba0)" || die "libgba0 does not replace libgba"
grep -q 'gba-index --trigger' <<<"$(ask --scripts gba-udev)" || die "gba-udev applies no rules"
[[ "$(ask --scripts gba-udev)" != *subsystem* ]] || die "gba-udev touches devices of others"
