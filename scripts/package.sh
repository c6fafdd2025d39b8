#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/package.sh [--rpm] [--torch] [FOLDER]

Builds Debian packages, or with --rpm RPM packages, of the libraries, headers, programs, documents
and the Python module (docs/install.md lists them), and puts them into FOLDER (default:
build-package/packages). Debug information is in Debian packages that end in .ddeb.

  --torch   also packages the backend of torch.distributed, which needs PyTorch to build
TEXT
}

kind=DEB
suffixes=(deb ddeb)
groups=(build options package)
torch=OFF
handle_help_option "$@"
while [[ "${1:-}" == -* ]]; do
  case "$1" in
    --rpm)
      kind=RPM
      suffixes=(rpm)
      ;;
    --torch)
      torch=ON
      groups+=(torch)
      ;;
    *) usage_error "unknown option: $1" ;;
  esac
  shift
done
[[ $# -le 1 ]] || usage_error "expected one argument at most, the folder"
install_packages "${groups[@]}"
folder="$(realpath -m "${1:-$ROOT/build-package/packages}")"
cd "$ROOT"
build="build-package"
# Packages do not depend on what else is installed.
arguments=(-DSHMEM_UCX=ON -DSHMEM_PMIX=ON -DSHMEM_METRICS=ON -DSHMEM_MPI=ON -DSHMEM_PYTHON_MODULE=ON "-DSHMEM_TORCH=$torch")
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
