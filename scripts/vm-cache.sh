# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced, after common.sh, by the scripts that fill the folder from which the tests labelled vm take QEMU and kernels.
# They set RECIPE, which describes what is fetched and where it is put. Contents from another recipe are made again.

cache="${GBA_VM_CACHE:-$HOME/.cache/gba-vm}"
fetched=0 # KB

has() {
  [[ "$(cat "$cache/$1/recipe" 2>/dev/null)" == "$RECIPE" ]]
}

# All or nothing, so that an incomplete cache is not taken for a complete one.
put_into_cache() {
  echo "$RECIPE" >"$work/$1/recipe"
  rm -rf "${cache:?}/$1"
  mv "$work/$1" "$cache/$1"
}

# Only one script runs at a time. Its folder $work is removed when it ends.
lock_cache() {
  local lock
  mkdir -p "$cache" || die "cannot make the folder $cache (GBA_VM_CACHE names another)"
  exec {lock}>"$cache/lock"
  flock "$lock"
  rm -rf "$cache"/work.* # left by a killed script
  work="$(mktemp -d "$cache/work.XXXXXX")"
  trap 'rm -rf "$work"' EXIT
}

# Configures an apt in its own folder, with the suites that are needed and without installed packages.
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

# Runs an apt program with that configuration and its output in a file.
apt() {
  local program="$1"
  shift
  "$program" -c "$work/apt/apt.conf" "$@" >"$work/apt/output" 2>&1
}

problems() {
  grep -E '^(E|W|Err)' "$work/apt/output" | head -n 5
}

# Downloads one package to $work/packages.
download() {
  local package="$1" suite="$2"
  mkdir -p "$work/packages"
  (cd "$work/packages" && apt apt-get -q download "$package/$suite") ||
    die "cannot fetch $package of $suite: $(problems)"
}

# Unpacks the packages of $work/packages into the folder $1, and removes them.
unpack_all() {
  local package
  fetched=$((fetched + $(du -sk "$work/packages" | cut -f 1)))
  for package in "$work"/packages/*.deb; do
    dpkg-deb --extract "$package" "$1" || die "cannot unpack $package"
  done
  rm -r "$work/packages"
}
