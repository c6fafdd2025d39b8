#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/fetch-vm.sh [KERNEL...]

Fetches what the tests labelled vm need, QEMU, busybox and Debian's kernels of the suites KERNEL
(default bookworm; trixie and trixie-backports are newer), as Debian packages from the mirror that
this machine's apt uses, and unpacks them into $GBA_VM_CACHE, default ~/.cache/gba-vm. Nothing is
installed and apt's own state is not touched. What is there already is not fetched again, so a
filled folder needs no network. With one kernel: 130 MB to fetch, 190 MB of disk.
TEXT
}

# What is fetched, and where it is put: a cache made by another recipe is made again.
readonly RECIPE=1
readonly QEMU_SUITE=trixie-backports
readonly BUSYBOX_SUITE=bookworm
# In the order in which they are loaded; a kernel need not have all of them.
readonly MODULES=(irqbypass iommufd vfio vfio_virqfd vfio_iommu_type1 vfio-pci-core vfio-pci)

has() {
  [[ "$(cat "$cache/$1/recipe" 2>/dev/null)" == "$RECIPE" ]]
}

# All of it or nothing: a cache that was cut short is not mistaken for a whole one.
put_into_cache() {
  echo "$RECIPE" >"$work/$1/recipe"
  rm -rf "${cache:?}/$1"
  mv "$work/$1" "$cache/$1"
}

# The address from which this machine has its own release.
mirror() {
  local codename
  codename="$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)"
  # shellcheck disable=SC2016 # the names are apt's
  apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
    awk -v codename="$codename" '
      $2 == "main" && ($1 == codename || $1 ~ /^(old)*stable$|^testing$|^unstable$|^sid$/) { print $3; exit }'
}

# An apt that knows the suites that are wanted and no installed package, in a folder of its own.
make_apt() {
  local from
  from="$(mirror)"
  [[ -n "$from" ]] || die "apt's sources on this machine name no Debian mirror (see apt-get indextargets)"
  mkdir -p "$work"/apt/{state/lists/partial,cache/archives/partial}
  touch "$work/apt/status"
  printf "deb $from %s main\n" bookworm trixie trixie-backports >"$work/apt/sources.list"
  cat >"$work/apt/apt.conf" <<TEXT
Dir::State "$work/apt/state";
Dir::State::status "$work/apt/status";
Dir::Cache "$work/apt/cache";
Dir::Cache::pkgcache "pkgcache.bin";
Dir::Cache::srcpkgcache "srcpkgcache.bin";
Dir::Etc::sourcelist "$work/apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Acquire::Languages "none";
APT::Update::Error-Mode "any";
Acquire::Retries "2";
Acquire::http::Timeout "20";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
#clear APT::Update::Post-Invoke;
#clear DPkg::Post-Invoke;
TEXT
  apt apt-get -q update || die "cannot read the package lists of bookworm, trixie and trixie-backports at $from: $(problems)"
}

# Runs an apt program with that apt; what it says is in a file.
apt() {
  local program="$1"
  shift
  "$program" -c "$work/apt/apt.conf" "$@" >"$work/apt/output" 2>&1
}

problems() {
  grep -E '^(E|W|Err)' "$work/apt/output" | head -n 5
}

# A package and all that it depends on, into the folder $work/packages.
download_with_dependencies() {
  local package="$1" suite="$2"
  apt apt-get -q -y --download-only -t "$suite" install "$package" ||
    die "cannot fetch $package of $suite and what it needs: $(problems)"
  mkdir -p "$work/packages"
  mv "$work"/apt/cache/archives/*.deb "$work/packages"
}

# One package, into the folder $work/packages.
download() {
  local package="$1" suite="$2"
  mkdir -p "$work/packages"
  (cd "$work/packages" && apt apt-get -q download "$package/$suite") ||
    die "cannot fetch $package of $suite: $(problems)"
}

unpack_all() {
  local package
  fetched=$((fetched + $(du -sk "$work/packages" | cut -f 1)))
  for package in "$work"/packages/*.deb; do
    dpkg-deb --extract "$package" "$1" || die "cannot unpack $package"
  done
  rm -r "$work/packages"
}

fetch_qemu() {
  download_with_dependencies qemu-system-x86 "$QEMU_SUITE"
  unpack_all "$work/qemu"
  [[ -x "$work/qemu/usr/bin/qemu-system-x86_64" ]] || die "the package qemu-system-x86 holds no qemu-system-x86_64"
  put_into_cache qemu
}

fetch_busybox() {
  download busybox-static "$BUSYBOX_SUITE"
  unpack_all "$work/unpacked"
  mkdir "$work/busybox"
  find "$work/unpacked" -path '*bin/busybox' -exec cp {} "$work/busybox/busybox" \;
  [[ -x "$work/busybox/busybox" ]] || die "the package busybox-static holds no busybox"
  put_into_cache busybox
}

# The real packages behind the name linux-image-amd64: one or, in newer suites, several.
kernel_packages() {
  local version
  apt apt-cache madison linux-image-amd64 || return 1
  version="$(awk -v suite="$1/main" '$6 == suite { print $3; exit }' "$work/apt/output")"
  apt apt-cache depends --recurse --important "linux-image-amd64=$version" || return 1
  grep -E '^linux-(image|binary|modules)-[0-9]' "$work/apt/output"
}

# The n-th module in the loading order becomes modules/n-NAME.ko.
fetch_kernel() {
  local suite="$1" packages package index module
  packages="$(kernel_packages "$suite")" || die "there is no kernel package linux-image-amd64 in $suite"
  for package in $packages; do
    download "$package" "$suite"
  done
  mkdir -p "$work/kernel-$suite/modules"
  unpack_all "$work/unpacked"
  find "$work/unpacked" -name 'vmlinuz*' -type f -exec cp {} "$work/kernel-$suite/vmlinuz" \;
  [[ -f "$work/kernel-$suite/vmlinuz" ]] || die "no kernel in the packages ${packages//$'\n'/ }"
  for index in "${!MODULES[@]}"; do
    module="$(find "$work/unpacked" -name "${MODULES[$index]}.ko*")"
    [[ -n "$module" ]] || continue
    cp "$module" "$work/kernel-$suite/modules/$index-${module##*/}"
  done
  find "$work/kernel-$suite/modules" -name '*.xz' -exec "$cache/busybox/busybox" unxz {} +
  rm -r "$work/unpacked"
  put_into_cache "kernel-$suite"
}

fetch_missing() {
  local suite
  if [[ "$(dpkg --print-architecture 2>/dev/null)" != amd64 ]] || ! command -v apt-get >/dev/null; then
    die "only a Debian system on amd64 can fetch QEMU; a filled $cache from one will do too"
  fi
  make_apt
  fetched=0
  has qemu || fetch_qemu
  has busybox || fetch_busybox
  for suite in "${kernels[@]}"; do
    has "kernel-$suite" || fetch_kernel "$suite"
  done
  echo "fetch-vm.sh: fetched $((fetched / 1024)) MB of packages in $SECONDS s"
}

all_there() {
  local suite
  has qemu && has busybox || return 1
  for suite in "${kernels[@]}"; do
    has "kernel-$suite" || return 1
  done
}

handle_help_option "$@"
kernels=("${@:-bookworm}")
for suite in "${kernels[@]}"; do
  [[ "$suite" =~ ^(bookworm|trixie|trixie-backports)$ ]] || usage_error "no kernel of that suite: $suite"
done
cache="${GBA_VM_CACHE:-$HOME/.cache/gba-vm}"
if ! all_there; then
  mkdir -p "$cache" || die "cannot make the folder $cache (GBA_VM_CACHE names another)"
  exec {lock}>"$cache/lock"
  flock "$lock"
  rm -rf "$cache"/work.* # of one that was killed
  work="$(mktemp -d "$cache/work.XXXXXX")"
  trap 'rm -rf "$work"' EXIT
  all_there || fetch_missing
fi
echo "fetch-vm.sh: QEMU, busybox and kernels of ${kernels[*]} are in $cache"
