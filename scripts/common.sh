# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the other scripts, which define usage(): the path of the tree, and error reports.

# shellcheck disable=SC2034 # used by the scripts that source this
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
readonly ROOT

die() {
  echo "${0##*/}: $*" >&2
  exit 1
}

usage_error() {
  {
    echo "${0##*/}: $*"
    echo
    usage
  } >&2
  exit 2
}

# Handles --help as the first argument, which every script has.
handle_help_option() {
  case "${1:-}" in
    -h | --help)
      usage
      exit 0
      ;;
  esac
}

# Installs the packages of the groups that are missing (scripts/install-deps.sh).
install_packages() {
  "$ROOT/scripts/install-deps.sh" "$@"
}

# The generator of a folder, if it is configured already, perhaps without a preset; presets name Ninja.
generator_of() {
  sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' "$1/CMakeCache.txt" 2>/dev/null || true
}

# The folder of a preset's build.
build_folder_of() {
  [[ "$1" == release ]] && echo "$ROOT/build" || echo "$ROOT/build-$1"
}

# One line that says why a build failed, if that is not the compiler's output above it.
explain_failed_build() {
  local free
  free="$(df --output=avail -k "$1" 2>/dev/null | tail -n 1)"
  [[ -z "$free" ]] || ((free > 65536)) || echo "${0##*/}: the disk is full: $((free / 1024)) MiB are left for $1" >&2
  return 1
}

# configure_preset PRESET [ARGUMENT...]: changes to the top folder of the tree.
configure_preset() {
  local preset="$1" folder generator tree
  shift
  folder="$(build_folder_of "$preset")"
  generator="$(generator_of "$folder")"
  tree="$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$folder/CMakeCache.txt" 2>/dev/null || true)"
  [[ -z "$tree" || "$tree" -ef "$ROOT" ]] || die "$folder was configured for another tree, $tree: remove it, then run this again"
  cd "$ROOT" && { cmake --preset "$preset" ${generator:+"-G$generator"} "$@" || explain_failed_build "$ROOT"; }
}

# Configures PRESET and builds it, or only the named targets. The commands are chained by &&, since bash ignores set -e
# in a function that is called in a condition.
build_preset() {
  local preset="$1"
  shift
  configure_preset "$preset" && build_folder "$preset" "$@"
}

# Builds a configured PRESET, or only the named targets. Unlike Ninja, make has to be told to use all processors.
build_folder() {
  local preset="$1" folder generator
  shift
  folder="$(build_folder_of "$preset")"
  generator="$(generator_of "$folder")"
  local -a jobs=()
  [[ "$generator" != *Makefiles ]] || jobs=(-j "$(nproc)")
  cmake --build --preset "$preset" "${jobs[@]}" ${1:+--target "$@"} || explain_failed_build "$folder"
}

# From the output of ctest: the names of tests that failed, and of those that were skipped.
failed_tests() {
  sed -nE '/\((Skipped|Disabled)\)/!s/^\s*[0-9]+ - (\S+) \([A-Za-z ].*\).*/\1/p' "$@"
}
skipped_tests() {
  sed -nE 's/^\s*[0-9]+ - (\S+) \(Skipped\).*/\1/p' "$@"
}

# The mirror of this machine's own Debian release.
mirror() {
  local codename
  codename="$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)"
  # shellcheck disable=SC2016 # the names are apt's
  apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
    awk -v codename="$codename" '
      $2 == "main" && ($1 == codename || $1 ~ /^(old)*stable$|^testing$|^unstable$|^sid$/) { print $3; exit }'
}

# Succeeds if this machine can build the fuzz targets; else prints why not.
can_fuzz() {
  command -v clang++ >/dev/null || {
    echo "fuzz targets: skipped, clang++ is not installed (scripts/install-deps.sh test installs it)"
    return 1
  }
  [[ -f "$(clang++ -print-resource-dir)/lib/linux/libclang_rt.fuzzer-$(uname -m).a" ]] || {
    echo "fuzz targets: skipped, clang++ has no libFuzzer (scripts/install-deps.sh test installs it)"
    return 1
  }
}

# The path of NAME-14 if it is installed, else of NAME. Versions of clang-format format differently.
versioned_program() {
  command -v "$1-14" || command -v "$1" || die "cannot find $1 (version 14); scripts/install-deps.sh lint installs it"
}

# Success if this machine has a compiler and an emulator for arm64, and the arm64 packages in build-arm64-root/, or gets
# them; else says why not.
can_cross_compile() {
  local reason
  if [[ "$(uname -m)" == aarch64 ]]; then
    echo "unit tests, arm64: skipped, this machine is an arm64 itself: all tests here are arm64 tests"
    return 1
  fi
  {
    reason="$("$ROOT/scripts/install-deps.sh" arm64 2>&1)" &&
      reason="$("$ROOT/scripts/arm64-root.sh" "$ROOT/build-arm64-root" 2>&1)"
  } || {
    echo "unit tests, arm64: skipped, ${reason##*$'\n'}"
    return 1
  }
}

# Where the root of a Debian release is that scripts/debian-root.sh makes for other scripts.
root_folder() {
  echo "${XDG_CACHE_HOME:-$HOME/.cache}/gba-roots/$1"
}
