#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/package.sh [--rpm] [FOLDER]

Builds Debian packages, or with --rpm RPM packages, of the libraries, headers, programs, documents
and the Python module (docs/install.md lists them), and puts them into FOLDER (default:
build-package/packages).
TEXT
}

kind=DEB
suffix=deb
handle_help_option "$@"
if [[ "${1:-}" == --rpm ]]; then
  kind=RPM
  suffix=rpm
  shift
fi
[[ $# -le 1 ]] || usage_error "expected one argument at most, the folder"
install_packages build options package
folder="$(realpath -m "${1:-$ROOT/build-package/packages}")"
cd "$ROOT"
build="build-package"
# Packages do not depend on what else is installed.
arguments=(-DSHMEM_UCX=ON -DSHMEM_PMIX=ON -DSHMEM_MPI=ON -DSHMEM_PYTHON_MODULE=ON)
if [[ $kind == RPM ]]; then
  build="build-package-rpm"
  arguments+=(-DCMAKE_INSTALL_LIBDIR=lib64 -DSHMEM_PYTHON_FOLDER=lib/python3/site-packages)
fi
cmake --preset package -B "$build" "${arguments[@]}"
cmake --build "$build"
mkdir -p "$folder"
rm -f "$build"/*."$suffix"
(cd "$build" && cpack -G "$kind")
mv "$build"/*."$suffix" "$folder"
ls -l "$folder"/*."$suffix"
