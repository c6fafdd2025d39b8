#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/package.sh [FOLDER]

Builds Debian packages of the libraries, headers, programs, documents and the Python module
(docs/install.md lists them) and puts them into FOLDER (default: build-package/packages).
TEXT
}

handle_help_option "$@"
[[ $# -le 1 ]] || usage_error "expected one argument at most, the folder"
install_packages build options package
folder="$(realpath -m "${1:-$ROOT/build-package/packages}")"
cd "$ROOT"
cmake --preset package
cmake --build --preset package
mkdir -p "$folder"
rm -f build-package/*.deb
(cd build-package && cpack -G DEB)
mv build-package/*.deb "$folder"
ls -l "$folder"/*.deb
