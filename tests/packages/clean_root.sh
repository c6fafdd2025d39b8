#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the packages in a bare Debian and uses them there: the fake device, the tool, a user's program that finds
# libgba by pkg-config and by CMake, and OpenSHMEM programs, alongside Debian's Open MPI. Skipped (77) without root,
# debootstrap or a Debian mirror. With PACKAGE_FOLDER it takes packages that have been built already.
set -euo pipefail
# shellcheck source=tests/packages/root.sh
source "$(dirname "${BASH_SOURCE[0]}")/root.sh"

usage() {
  echo "Usage: clean_root.sh SOURCE_FOLDER SUITE [PACKAGE_FOLDER]"
}

# Packages with the names and files of earlier builds, which the new ones must replace.
install_earlier_packages() {
  local name
  for name in libgba:usr/lib/udev/rules.d/70-gba.rules libshmem:usr/bin/kv_shuffle; do
    mkdir -p "$work/old/DEBIAN" "$work/old/$(dirname "${name#*:}")"
    echo old >"$work/old/${name#*:}"
    printf '%s\n' "Package: ${name%:*}" "Version: 0.1.0" "Architecture: all" "Maintainer: nobody <root@localhost>" \
      "Description: an earlier build" >"$work/old/DEBIAN/control"
    dpkg-deb -b "$work/old" "$root/packages/old-${name%:*}.deb" >/dev/null
    rm -r "$work/old"
    check "${name%:*} of an earlier build installs" inside dpkg -i "/packages/old-${name%:*}.deb"
  done
}

build_a_program() {
  check "libgba-dev installs" inside sh -c 'apt-get -q -y install --no-install-recommends \
    /packages/libgba-dev_*.deb gcc libc6-dev pkg-config make cmake'
  cat >"$root/tmp/main.c" <<'TEXT'
#include <gba/gba.h>
#include <stdio.h>
#include <uapi/gba_regs.h>
int main(void) {
  gba_device* device = 0;
  if (gba_open("vfio-user:/tmp/gba.sock", &device) != 0) return puts(gba_error_text()), 1;
  gba_close(device);
  return GBA_STATUS_READY == 1 ? 0 : 1;
}
TEXT
  cat >"$root/tmp/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(gba 0.1 REQUIRED)
add_executable(by_cmake main.c)
target_link_libraries(by_cmake gba::gba)
TEXT
  # shellcheck disable=SC2016 # expanded in the root
  check "a program is built by pkg-config" inside sh -c 'cd /tmp && cc main.c -o by_pc $(pkg-config --cflags --libs gba)'
  check "the program built by pkg-config runs" inside /tmp/by_pc
  check "a program is built by find_package" inside sh -c 'cd /tmp && cmake -B b . && cmake --build b'
  check "the program built by find_package runs" inside /tmp/b/by_cmake
}

# Open MPI has commands, manuals and headers of the same names; both installations must work afterwards.
use_shmem() {
  check "Open MPI installs" inside apt-get -q -y install --no-install-recommends \
    libopenmpi-dev openmpi-bin openssh-client man-db g++
  check "libshmem and its headers install" inside sh -c 'apt-get -q -y install --no-install-recommends \
    /packages/libshmem1_*.deb /packages/libshmem-tools_*.deb /packages/libshmem-dev_*.deb'
  # shellcheck disable=SC2016 # the name is dpkg-query's
  check "libshmem does not depend on MPI" inside sh -c '! dpkg-query -W -f="\${Depends}" libshmem1 libshmem-tools libshmem-dev | grep -E "mpi|pmix"'
  check "libshmem-doc installs" inside sh -c 'apt-get -q -y install --no-install-recommends /packages/libshmem-doc_*.deb'
  check "libshmem's debug information installs" inside sh -c 'dpkg -i /packages/libshmem1-dbgsym_*.ddeb'
  check "the plug-in for Open MPI installs" inside sh -c 'apt-get -q -y install --no-install-recommends /packages/libshmem-mpi_*.deb'
  check "the plug-in for MPICH installs" inside sh -c 'apt-get -q -y install --no-install-recommends /packages/libshmem-mpich_*.deb'
  check "the plug-ins find what they need" inside sh -c '! ldd /usr/lib/*/libshmem/libshmem_bootstrap_*.so | grep "not found"'
  check "oshcc is Open MPI's" inside sh -c 'oshcc --showme:version | grep "Open SHMEM"'
  check "oshcc.libshmem is ours" inside sh -c 'oshcc.libshmem --showme:version | grep "libshmem"'
  check "oshrun.libshmem is ours" inside oshrun.libshmem -n 2 --gba fake true
  check "bash completes its arguments" inside bash -c \
    '. /usr/share/bash-completion/completions/oshrun.libshmem && complete -p oshrun.libshmem'
  check "no file of Open MPI is changed" inside dpkg --verify openmpi-bin libopenmpi-dev
  own="/$(cd "$root" && ls -d usr/lib/*/libshmem/bin)"
  cp "$1/tests/packages/use_shmem.sh" "$root/tmp"
  check "programs are built and run" inside env PATH="$own:/usr/bin:/bin" TMPDIR=/tmp bash /tmp/use_shmem.sh /tmp/shmem
  check "the examples are built" inside env PATH="$own:/usr/bin:/bin" \
    sh -c 'mkdir /tmp/examples && make -C /usr/share/doc/libshmem-dev/examples OUT=/tmp/examples'
  check "an example runs" inside oshrun.libshmem -n 2 /tmp/examples/ring
  check "programs have no library path of their own" \
    sh -c "! readelf -d $root/tmp/shmem/by_oshcc | grep -E 'RPATH|RUNPATH'"
  check "man finds our manuals by PATH" inside env PATH="$own:/usr/bin:/bin" sh -c 'man -w oshcc | grep libshmem/share/man'
  check "man finds our manuals by the suffix" inside man -w oshrun.libshmem
  for manual in shmem_info kv_shuffle oshc++.libshmem shmem_put shmem_putmem; do
    check "there is a manual of $manual" inside man -w "$manual"
  done
}

use_openmpi() {
  # use_shmem has already installed openmpi-bin and its compiler.
  check "libgba-openmpi installs" inside sh -c 'apt-get -q -y install --no-install-recommends /packages/libgba-openmpi_*.deb'
  components="/$(cd "$root" && ls -d usr/lib/*/libgba/openmpi)"
  cp "$1/tests/packages/use_openmpi.sh" "$root/tmp"
  check "Open MPI's barriers are done by the device" inside env TMPDIR=/tmp bash /tmp/use_openmpi.sh /tmp/openmpi "$components"
}

use_python() {
  check "python3-shmem-kv installs" inside sh -c 'apt-get -q -y install --no-install-recommends /packages/python3-shmem-kv_*.deb'
  check "shmem_kv runs" inside oshrun.libshmem -n 2 python3 -c \
    'import shmem_kv; shmem_kv.init(1 << 20); shmem_kv.barrier_all(); shmem_kv.finalize()'
}

use_torch() {
  check "python3-shmem-torch installs" inside sh -c 'apt-get -q -y install --no-install-recommends /packages/python3-shmem-torch_*.deb'
  cat >"$root/tmp/all_reduce.py" <<'TEXT'
import sys
import torch
import torch.distributed as dist
import shmem_torch
rank = int(sys.argv[1])
dist.init_process_group("shmem", init_method="file:///tmp/store", rank=rank, world_size=2)
tensor = torch.full((3000,), rank + 1.0)
dist.all_reduce(tensor)
assert (tensor == 3).all(), tensor
dist.destroy_process_group()
TEXT
  # shellcheck disable=SC2016 # expanded in the root
  check "shmem_torch runs" inside sh -c 'python3 /tmp/all_reduce.py 0 & python3 /tmp/all_reduce.py 1 && wait $!'
}

remove_shmem() {
  check "libshmem is removed" inside apt-get -q -y purge libshmem1 libshmem1-dbgsym libshmem-tools libshmem-dev libshmem-doc libshmem-mpi libshmem-mpich python3-shmem-kv python3-shmem-torch
  # What it has measured is its user's.
  check "libshmem leaves no file behind" inside sh -c '! find / -xdev -path /root/.cache -prune -o -path /tmp -prune -o -path /packages -prune -o -path /proc -prune \
    -o \( -name "*libshmem*" -o -name "*shmem_kv*" -o -name "*shmem_torch*" \) -print | grep .'
  check "Open MPI's commands are still there" inside sh -c 'oshcc --showme:version && dpkg --verify openmpi-bin libopenmpi-dev'
}

# Here, or in a root if this is another release.
build_packages() {
  local -a where=()
  [[ "$(. /etc/os-release && echo "${VERSION_CODENAME:-}")" == "$2" ]] || where=(--root "$2")
  check "the packages are built" "$1/scripts/package.sh" --torch "${where[@]}" "$packages"
}

[[ $# == 2 || $# == 3 ]] || {
  usage >&2
  exit 2
}
make_root "$2"
packages="${3:-$work/packages}"
if [[ $# == 2 ]]; then
  mkdir "$packages"
  build_packages "$1" "$2"
fi
mkdir "$root/packages"
cp "$packages"/*deb "$root/packages"
install_earlier_packages
check "they install" inside sh -c 'apt-get -q update && apt-get -q -y install --no-install-recommends \
  /packages/libgba0_*.deb /packages/gba-udev_*.deb /packages/gba-tools_*.deb /packages/gba-fake-device_*.deb'
# shellcheck disable=SC2016 # the name is dpkg-query's
check "libgba of an earlier build is replaced" inside sh -c '! dpkg-query -W -f="\${db:Status-Status}" libgba | grep -x installed'
use_device_and_tool
build_a_program
use_shmem "$1"
use_openmpi "$1"
use_python
use_torch
remove_shmem
check "the packages are removed" inside apt-get -q -y purge libgba0 libgba-dev libgba-openmpi gba-udev gba-tools gba-fake-device
check "the packages leave no program behind" inside sh -c '! command -v gba && ! command -v gba-fake-device'
