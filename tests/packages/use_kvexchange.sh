#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds a member of an exchange with libkvexchange, by cc, pkg-config and CMake, and sees that it loads neither libshmem
# nor libgba; and with libshmem alone, in each way, and by dlopen. Uses oshcc from PATH; pkg-config and CMake find the
# libraries through their own variables.
set -euo pipefail

[[ $# == 1 ]] || {
  echo "Usage: use_kvexchange.sh WORK_FOLDER" >&2
  exit 2
}
mkdir -p "$1"
cd "$1"
unset CC CXX OSHCC LD_LIBRARY_PATH

die() {
  echo "use_kvexchange.sh: $*"
  exit 1
}

cat >member.c <<'TEXT'
#include <shmemx.h>
#include <shmemx_exchange.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(void) {
  char name[32];
  shmemx_exchange_t *owner, *reader;
  shmemx_exchange_block_t block;
  uint32_t region;
  shmemx_memory_t memory = {NULL, 4096, -1, 0};
  shmemx_exchange_key_t key = {"key", 3};
  char bytes[6] = "";
  void* to = bytes;
  if (shmemx_exchange_open("/", NULL, &owner) >= 0 || shmemx_error_text()[0] == 0) return 2;
  snprintf(name, sizeof name, "use-%d", (int)getpid());
  if (shmemx_exchange_open(name, NULL, &owner) != 0 || shmemx_exchange_open(name, NULL, &reader) != 0 ||
      shmemx_exchange_register(owner, &memory, &region) != 0)
    return puts(shmemx_error_text()), 3;
  strcpy(memory.address, "hello");
  shmemx_exchange_entry_t entry = {key, region, 0, 0, 6, 0};
  if (shmemx_exchange_publish(owner, &entry, 1) != 1 || shmemx_exchange_find(reader, &key, 1, 0, 0, &block) != 1 ||
      shmemx_exchange_pull(reader, &block, &to, 1, NULL, NULL) != 0)
    return puts(shmemx_error_text()), 4;
  puts(bytes);
  shmemx_exchange_close(reader);
  shmemx_exchange_close(owner);
  return 0;
}
TEXT

# works PROGRAM LIBRARY: it works, and is linked with the library.
works() {
  local output
  output="$(./"$1")" || die "$1 failed: $output"
  [[ "$output" == hello ]] || die "$1 printed \"$output\""
  readelf -d "$1" | grep -q "NEEDED.*\[$2\.so\.[0-9]*\]" || die "$1 is linked with $(readelf -d "$1" | grep NEEDED)"
}

# is_alone PROGRAM: what it loads while it works.
is_alone() {
  local loaded
  loaded="$(LD_DEBUG=files ./"$1" 2>&1)"
  grep -q 'calling init: .*/libkvexchange\.so' <<<"$loaded" || die "$1 does not load libkvexchange: $loaded"
  ! grep -E 'calling init: .*/lib(shmem|gba|mpi|pmix|ucp)\.' <<<"$loaded" || die "$1 loads more"
}

libdir="$(pkg-config --variable=libdir kvexchange)"
includedir="$(pkg-config --variable=includedir kvexchange)"
echo "== libkvexchange alone"
cc -Wall -Werror -I"$includedir" -o alone member.c -L"$libdir" -lkvexchange -Wl,-rpath,"$libdir"
# shellcheck disable=SC2046 # several words
cc -o by_pc member.c $(pkg-config --cflags --libs kvexchange) -Wl,-rpath,"$libdir"
echo "== libshmem alone"
cc -I"$includedir" -o by_shmem member.c -L"$libdir" -lshmem -Wl,-rpath,"$libdir"
cc -I"$includedir" -o by_shmem_as_needed member.c -Wl,--as-needed,--no-copy-dt-needed-entries -L"$libdir" -lshmem -Wl,-rpath,"$libdir"
cc -I"$includedir" -o by_sma member.c -L"$libdir" -lsma -Wl,-rpath,"$libdir"
oshcc -o by_oshcc member.c
# shellcheck disable=SC2046 # several words
cc -o by_shmem_pc member.c $(pkg-config --cflags --libs shmem) -Wl,-rpath,"$libdir"
echo "== both"
cc -I"$includedir" -o both member.c -L"$libdir" -lshmem -lkvexchange -Wl,--no-as-needed -lkvexchange -Wl,-rpath,"$libdir"
echo "== CMake"
cat >CMakeLists.txt <<'TEXT'
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(shmem 0.1 REQUIRED)
add_executable(by_cmake member.c)
target_link_libraries(by_cmake shmem::kvexchange)
add_executable(by_shmem_cmake member.c)
target_link_libraries(by_shmem_cmake shmem::shmem)
TEXT
rm -rf b
cmake -B b . >cmake.log || die "$(<cmake.log)"
cmake --build b >cmake.log || die "$(<cmake.log)"
for program in alone by_pc b/by_cmake; do
  works "$program" libkvexchange
  is_alone "$program"
done
for program in by_shmem by_shmem_as_needed by_sma by_oshcc by_shmem_pc both b/by_shmem_cmake; do
  works "$program" libshmem
done

echo "== dlopen"
cat >opened.py <<'TEXT'
import ctypes
import glob
import os
import sys

exchange = ctypes.c_void_p()
for name in ("libshmem", "libkvexchange"):
    for file in glob.glob(f"{sys.argv[1]}/{name}.so*"):
        library = ctypes.CDLL(file)
        if library.shmemx_exchange_open(b"opened-%d" % os.getpid(), None, ctypes.byref(exchange)) != 0:
            sys.exit(f"{file}: an exchange cannot be opened")
        library.shmemx_exchange_close(exchange)
TEXT
if command -v python3 >/dev/null; then
  python3 opened.py "$libdir" || die "the libraries cannot be used by ctypes"
fi
