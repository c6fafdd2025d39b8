# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the other scripts, which define usage(): where the tree is, and how mistakes are reported.

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

# --help, as the first argument: every script has it.
handle_help_option() {
  case "${1:-}" in
    -h | --help)
      usage
      exit 0
      ;;
  esac
}

# Installs what is missing, configures PRESET and builds it, or only the targets that are named. Ends in the tree's top
# folder. Chained, since bash does not stop at an error in a function whose success is asked for.
build_preset() {
  local preset="$1"
  shift
  "$ROOT/scripts/install-deps.sh" &&
    cd "$ROOT" &&
    cmake --preset "$preset" &&
    cmake --build --preset "$preset" ${1:+--target "$@"}
}

# Success if this machine can build the fuzz targets; else says why not.
can_fuzz() {
  command -v clang++ >/dev/null || {
    echo "fuzz targets: skipped, there is no clang++ (scripts/install-deps.sh installs it)"
    return 1
  }
  [[ -f "$(clang++ -print-resource-dir)/lib/linux/libclang_rt.fuzzer-$(uname -m).a" ]] || {
    echo "fuzz targets: skipped, clang++ has no libFuzzer (package libclang-rt-14-dev, for another version: -NN-)"
    return 1
  }
}

# The path of NAME-14 where it is installed under that name, else of NAME. Formats differ between versions.
versioned_program() {
  command -v "$1-14" || command -v "$1" || die "cannot find $1 (version 14); scripts/install-deps.sh installs it"
}
