#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs from a build folder into a temporary folder, moves that, builds programs that find libgba and libshmem there
# by wrappers, pkg-config and CMake, and uninstalls. Also uses libshmem from the build folder.
set -euo pipefail
shopt -s nullglob

[[ $# == 2 ]] || {
  echo "Usage: install.sh SOURCE_FOLDER BUILD_FOLDER" >&2
  exit 2
}
source="$1"
build="$2"
work="$(mktemp -d)"
prefix="$work/prefix"
moved="$work/moved"

# Restores the manifests of a real installation from this build, which uninstalling it needs.
restore() {
  rm -f "$build"/install_manifest*.txt
  cp -p "$work"/before/* "$build" 2>/dev/null || true
  rm -rf "$work"
}
mkdir "$work/before"
cp -p "$build"/install_manifest*.txt "$work/before" 2>/dev/null || true
trap restore EXIT

rm -f "$build"/install_manifest*.txt
for component in libgba libgba-dev libgba-openmpi gba-udev gba-tools gba-fake-device libshmem libshmem-tools libshmem-dev libshmem-doc \
  libshmem-mpi libshmem-mpich libshmem-mpi-abi python3-shmem-kv python3-shmem-torch; do
  cmake --install "$build" --prefix "$prefix" --component "$component" >/dev/null
done
! grep -hv "^$prefix/" "$build"/install_manifest*.txt || { echo "these are not installed below the prefix" && exit 1; }
unit="$prefix/lib/systemd/system/gba-fake-device.service"
grep -q "^ExecStart=$prefix/bin/gba-fake-device " "$unit" || { echo "the unit starts $(grep ExecStart "$unit")" && exit 1; }
mv "$prefix" "$moved"
library="$(find "$moved" -name 'libgba.so.0')"
libdir="${library%/*}"
[[ -n "$library" ]] || { echo "no libgba.so.0 below the prefix" && exit 1; }

cat >"$work/main.c" <<'TEXT'
#include <gba/coll_switch_barrier.h>
#include <gba/gba.h>
#include <gba/scoll_gba.h>
#include <gba/version.h>
#include <string.h>
#include <uapi/gba_regs.h>
int main(void) { return strcmp(gba_version(), GBA_LIBRARY_VERSION) == 0 && GBA_STATUS_READY == 1 ? 0 : 1; }
TEXT
cat >"$work/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(gba 0.1 REQUIRED)
add_executable(by_cmake main.c)
target_link_libraries(by_cmake gba::gba)
TEXT
echo "== by pkg-config"
flags="$(PKG_CONFIG_PATH="$libdir/pkgconfig" pkg-config --cflags --libs gba)"
# shellcheck disable=SC2086 # several words
cc "$work/main.c" -o "$work/by_pc" $flags
LD_LIBRARY_PATH="$libdir" "$work/by_pc"
echo "== by find_package"
cmake -S "$work" -B "$work/b" -DCMAKE_PREFIX_PATH="$moved" >/dev/null
cmake --build "$work/b" >/dev/null
LD_LIBRARY_PATH="$libdir" "$work/b/by_cmake"
echo "== what is installed runs"
"$moved/bin/gba-fake-device" --version
"$moved/bin/gba" --version
echo "== libshmem, installed"
configured="$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$build/CMakeCache.txt")"
readelf -d "$libdir/libshmem.so" | grep -q "RUNPATH.*\[\$ORIGIN:\$ORIGIN/\.\.:$configured/" ||
  { echo "libshmem.so has another RUNPATH: $(readelf -d "$libdir/libshmem.so" | grep RUNPATH)" && exit 1; }
use_shmem="$source/tests/packages/use_shmem.sh"
PATH="$moved/bin:$PATH" PKG_CONFIG_PATH="$libdir/pkgconfig" CMAKE_PREFIX_PATH="$moved" "$use_shmem" "$work/installed"
use_kvexchange="$source/tests/packages/use_kvexchange.sh"
PATH="$moved/bin:$PATH" PKG_CONFIG_PATH="$libdir/pkgconfig" CMAKE_PREFIX_PATH="$moved" "$use_kvexchange" "$work/installed_exchange"
for manual in oshcc oshc++ oshCC oshcxx oshrun shmem_info shmem_perf kv_shuffle tune_barrier tune_collective; do
  [[ -e "$moved/share/man/man1/$manual.1" ]] || { echo "no manual of $manual" && exit 1; }
done
version="$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")"
undated="$(find "$moved/share/man" -type f -exec grep -LE "^\.TH [^ ]+ [1-9] \"[0-9]{4}-[0-9]{2}-[0-9]{2}\" \"lib(gba|shmem) $version\"" {} +)"
[[ -z "$undated" ]] || { echo "manuals without date or version: $undated" && exit 1; }
for page in man1/oshrun.1 man3/shmem_putmem.3 man7/shmem.7; do
  [[ -s "$build/manuals/$page" ]] || { echo "the build tree has no manual $page" && exit 1; }
done
! command -v man >/dev/null || [[ "$(MANPATH="$build/manuals" man -w shmem_put)" == "$build/manuals/man3/shmem_put.3" ]] ||
  { echo "man does not find shmem_put in the build tree" && exit 1; }
echo "== tuners"
SHMEM_SYMMETRIC_SIZE=1M "$moved/bin/tune_barrier" -o "$work/barriers" 2 >/dev/null 2>"$work/log" || { cat "$work/log" && exit 1; }
SHMEM_BARRIER_TUNING="$work/barriers" "$moved/bin/shmem_info" >/dev/null
[[ ! -e "$moved/bin/bench_worker" ]] || { echo "a worker is in the folder of programs" && exit 1; }
echo "== profiles"
(cd "$work" && "$moved/bin/oshrun" --profile -n 2 "$moved/bin/shmem_perf" --sizes 8 --repeats 1 --milliseconds 0.1 put >/dev/null)
grep -q "^shmem_putmem " "$work/shmem_profile.txt" || { echo "no profile of an installed program" && exit 1; }
echo "== documents"
documents="$moved/share/doc/libshmem"
for file in LICENSE NOTICE copyright CHANGELOG.md docs/deployment.md; do
  [[ -s "$documents/$file" ]] || { echo "no $file among the documents" && exit 1; }
done
while IFS=: read -r page link; do
  [[ -e "$(dirname "$page")/$link" ]] || { echo "$page links to $link, which is not installed" && exit 1; }
done < <(grep -roE '\]\([^)#:]+\.md' "$documents" | sed 's/\](//')
echo "== module file"
modules="$moved/share/modulefiles/libshmem"
module="$(<"$modules/$version")"
to_prefix="$(sed -n 's/^set prefix .* \([./]*\)\]\]$/\1/p' <<<"$module")"
[[ "$(cd "$modules/$to_prefix" && pwd -P)" == "$(cd "$moved" && pwd -P)" ]] || { echo "the module file's prefix is $to_prefix" && exit 1; }
# shellcheck disable=SC2016 # a variable of Tcl
while read -r folder; do
  [[ -d "$moved/$folder" ]] || { echo "the module file names $folder" && exit 1; }
done < <(sed -n 's/^prepend-path .* \$prefix\/\?//p' <<<"$module")
if command -v tclsh >/dev/null; then
  PATH="$moved/bin:$PATH" tclsh /dev/stdin "$modules/$version" <<'TEXT' || { echo "Tcl does not read the module file" && exit 1; }
set ModulesCurrentModulefile [lindex $argv 0]
proc module-whatis {text} {}
proc conflict {name} {}
proc prepend-path {variable folder} {
  if {![file isdirectory $folder]} { error "$variable: $folder" }
  set ::folders($variable) $folder
}
source $ModulesCurrentModulefile
set modules [file isdirectory [file join $prefix lib/python3/dist-packages/shmem_kv]]
if {$modules && ![file isdirectory $folders(PYTHONPATH)/shmem_kv]} { error "no PYTHONPATH" }
TEXT
fi
echo "== a kernel with its launch"
echo 'kernel<<<2, nullptr, stream>>>(1);' >"$work/kernel.asc"
"$moved/share/libshmem/ascend-launches" "$work/kernel.asc" | grep -q 'shmemx_ascend_launch(2, stream'
echo "== its example"
PATH="$moved/bin:$PATH" "$moved/share/doc/libshmem-dev/examples/kv_shuffle/scripts/run.sh" 2
for page in "$source"/docs/man/*.3; do
  [[ -f "$moved/share/man/man3/${page##*/}" ]] || { echo "no manual ${page##*/}" && exit 1; }
  names="$(sed -n '/^\.SH NAME/,/\\-/{s/ *\\-.*//;s/[, ]\+/\n/g;p}' "$page" | grep -E "shmem|gba")" ||
    { echo "${page##*/} has no NAME" && exit 1; }
  for name in $names; do
    [[ -e "$moved/share/man/man3/$name.3" ]] || { echo "no manual of $name, which is in ${page##*/}" && exit 1; }
  done
done
if [[ -d "$moved/lib/python3/dist-packages/shmem_kv" ]]; then
  echo "== shmem_kv, installed"
  python="$(sed -n 's/^SHMEM_PYTHON:FILEPATH=//p' "$build/CMakeCache.txt")"
  PYTHONPATH="$moved/lib/python3/dist-packages" PYTHONDONTWRITEBYTECODE=1 "$moved/bin/oshrun" -n 2 --gba off --timeout 60 \
    "$python" -c 'import shmem_kv; shmem_kv.init(1 << 20); shmem_kv.barrier_all(); shmem_kv.finalize()'
  PYTHONPATH="$moved/lib/python3/dist-packages" PYTHONDONTWRITEBYTECODE=1 "$python" -c '
import shmem_kv.adapters.lmcache, shmem_kv.adapters.sglang, shmem_kv.adapters.vllm, shmem.core
assert shmem.core.direct.my_pe() < 0
with shmem_kv.Exchange("installed") as exchange:
    assert not shmem_kv.Store(exchange, 4096).put("key", b"block").any()'
fi
echo "== libshmem, in the build tree"
PATH="$build/bin:$PATH" PKG_CONFIG_PATH="$build/lib/pkgconfig" CMAKE_PREFIX_PATH="$build" "$use_shmem" "$work/built"
PATH="$build/bin:$PATH" PKG_CONFIG_PATH="$build/lib/pkgconfig" CMAKE_PREFIX_PATH="$build" "$use_kvexchange" "$work/built_exchange"
if [[ -d "$libdir/libgba/openmpi" ]]; then
  echo "== with Open MPI"
  PATH="$moved/bin:$PATH" "$source/tests/packages/use_openmpi.sh" "$work/openmpi" "$libdir/libgba/openmpi"
fi
echo "== uninstalled"
mv "$moved" "$prefix"
# What Python leaves where it may write.
[[ ! -d "$prefix/lib/python3/dist-packages/shmem_kv" ]] || mkdir "$prefix"/lib/python3/dist-packages/shmem{,_kv}/__pycache__
cmake -DBUILD_DIR="$build" -P "$source/scripts/uninstall.cmake" 2>/dev/null >&2
[[ ! -e "$prefix" ]] || { echo "left behind: $(find "$prefix")" && exit 1; }
! cmake -DBUILD_DIR="$build" -P "$source/scripts/uninstall.cmake" 2>/dev/null >&2 || { echo "it uninstalls twice" && exit 1; }
echo "== what is not this project's stays"
cmake --install "$build" --prefix "$prefix" --component libgba-dev >/dev/null
touch "$prefix/include/other.h"
cmake -DBUILD_DIR="$build" -P "$source/scripts/uninstall.cmake" 2>/dev/null >&2
[[ "$(find "$prefix" -printf '%P ')" == " include include/other.h " ]] || { echo "left behind: $(find "$prefix")" && exit 1; }
