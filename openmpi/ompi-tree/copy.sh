#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: openmpi/ompi-tree/copy.sh TREE

Copies the component coll/gba into the source tree of an Open MPI 4.1. There, then:
  ./autogen.pl && ./configure --with-gba=DIR ... && make
DIR is where libgba is installed (cmake --install build --prefix DIR). A tree from a tarball needs
autogen.pl --force. autogen.pl needs autoconf, automake, libtool and flex.
TEXT
}

case "${1:-}" in
  -h | --help)
    usage
    exit 0
    ;;
esac
[[ $# == 1 ]] || {
  usage >&2
  exit 2
}
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
tree="$1"
if ! grep -qs '^major=4$' "$tree/VERSION" || ! grep -qs '^minor=1$' "$tree/VERSION"; then
  echo "copy.sh: $tree is not the source tree of an Open MPI 4.1 (its VERSION says otherwise)" >&2
  exit 1
fi
component="$tree/ompi/mca/coll/gba"
mkdir -p "$component"
sources=("$here"/../common/*.[ch] "$here"/../coll/*.[ch])
cp "${sources[@]}" "$here"/coll/configure.m4 "$component"
sed "s/@SOURCES@/${sources[*]##*/}/" "$here"/coll/Makefile.am.in >"$component/Makefile.am"
echo "Copied to $component"
