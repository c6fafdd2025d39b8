#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: openmpi/ompi-tree/copy.sh TREE

Copies the components coll/gba and scoll/gba into the source tree of an Open MPI 4.1. There, then:
  ./autogen.pl && ./configure --with-gba=DIR --enable-scoll-gba ... && make
DIR is where libgba is installed (cmake --install build --prefix DIR). Without --enable-scoll-gba that
one is built where there is libgba; it is never built without Open MPI's OpenSHMEM, which needs UCX.
Where DIR/lib is none of the linker's folders, LD_LIBRARY_PATH has to name it when programs run.
A tree from a tarball needs autogen.pl --force. autogen.pl needs autoconf, automake, libtool and flex.
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

# copy_component PROJECT FRAMEWORK LIBRARY README
copy_component() {
  local component="$tree/$1/mca/$2/gba"
  local sources=("$here"/../common/*.[ch] "$here/../$2"/*.[ch])
  mkdir -p "$component"
  cp "${sources[@]}" "$component"
  cp "$here/$2.m4" "$component/configure.m4"
  cp "$here/../$4" "$component/README.md"
  sed -e "s/@PROJECT@/$1/; s/@FRAMEWORK@/$2/g; s,@LIBRARY@,$3," -e "s/@SOURCES@/${sources[*]##*/}/" \
    "$here"/Makefile.am.in >"$component/Makefile.am"
  echo "Copied to $component"
}

cp "$here"/check_gba.m4 "$tree/config/ompi_check_gba.m4"
copy_component ompi coll ompi/lib@OMPI_LIBMPI_NAME@ README.md
copy_component oshmem scoll oshmem/liboshmem scoll/README.md
