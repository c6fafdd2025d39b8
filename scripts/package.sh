#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/package.sh [--rpm | --arm64] [--torch] [--root RELEASE] [FOLDER]

Builds Debian packages, or with --rpm RPM packages, of the libraries, headers, programs, documents
and the Python module (docs/install.md lists them), and puts them into FOLDER (default:
build-package/packages). Debug information is in Debian packages that end in .ddeb.

  --torch         also packages the backend of torch.distributed, which needs PyTorch to build
  --arm64         cross-compiles Debian packages for arm64, of all but the parts for MPI and Python
  --root RELEASE  builds Debian packages for another release, in a root of it: trixie is Debian 13
                  (scripts/debian-root.sh makes it in ~/.cache/gba-roots). The build and the default
                  FOLDER are in build-package-RELEASE. Exits with 77, and the reason, if this machine
                  cannot have such a root.
TEXT
}

kind=DEB
suffixes=(deb ddeb)
groups=(build options package)
torch=OFF
arm64=
release=
handle_help_option "$@"
while [[ "${1:-}" == -* ]]; do
  case "$1" in
    --rpm)
      kind=RPM
      suffixes=(rpm)
      ;;
    --arm64)
      arm64=yes
      groups=(build package arm64)
      ;;
    --torch)
      torch=ON
      groups+=(torch)
      ;;
    --root)
      [[ "${2:-}" =~ ^[a-z]+$ ]] || usage_error "--root needs the name of a Debian release, e.g. trixie"
      release="$2"
      shift
      ;;
    *) usage_error "unknown option: $1" ;;
  esac
  shift
done
[[ -z "$arm64" || ($kind == DEB && $torch == OFF) ]] || usage_error "--arm64 excludes --rpm and --torch"
[[ -z "$release" || ($kind == DEB && -z "$arm64") ]] || usage_error "--root excludes --rpm and --arm64"
[[ $# -le 1 ]] || usage_error "expected one argument at most, the folder"
# In a root of another release this script has been called by itself, and the folder of the build is the release's.
build="${GBA_PACKAGE_BUILD:-build-package${release:+-$release}}"
folder="$(realpath -m "${1:-$ROOT/$build/packages}")"
cd "$ROOT"
if [[ -n "$release" ]]; then
  with="$(IFS=,; echo "${groups[*]}")"
  torch_argument=()
  [[ $torch == OFF ]] || torch_argument=(--torch)
  scripts/debian-root.sh --with "$with" "$release" "$(root_folder "$release")" env GBA_PACKAGE_BUILD="$build" \
    scripts/package.sh "${torch_argument[@]}"
  if [[ "$folder" != "$(realpath -m "$build/packages")" ]]; then
    mkdir -p "$folder"
    mv "$build"/packages/*deb "$folder"
  fi
  exit
fi
install_packages "${groups[@]}"
# Packages do not depend on what else is installed.
arguments=(-DSHMEM_UCX=ON -DSHMEM_PMIX=ON -DSHMEM_METRICS=ON "-DSHMEM_TORCH=$torch")
if [[ -n "$arm64" ]]; then
  scripts/arm64-root.sh build-arm64-root
  build="build-package-arm64"
  arguments+=(--toolchain scripts/arm64.cmake -DCMAKE_INSTALL_LIBDIR=lib/aarch64-linux-gnu
    -DSHMEM_MPI=OFF -DGBA_OPENMPI=OFF -DSHMEM_PYTHON_MODULE=OFF)
else
  arguments+=(-DSHMEM_MPI=ON -DSHMEM_PYTHON_MODULE=ON)
fi
if [[ $kind == RPM ]]; then
  build="build-package-rpm"
  arguments+=(-DCMAKE_INSTALL_LIBDIR=lib64 -DSHMEM_PYTHON_FOLDER=lib/python3/site-packages)
fi
cmake --preset package -B "$build" "${arguments[@]}"
cmake --build "$build"
mkdir -p "$folder"
for suffix in "${suffixes[@]}"; do
  rm -f "$build"/*."$suffix"
done
(cd "$build" && cpack -G "$kind")
for suffix in "${suffixes[@]}"; do
  mv "$build"/*."$suffix" "$folder"
  ls -l "$folder"/*."$suffix"
done
