#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The first hour of a new user in a bare root of a Debian release: what README and docs/install.md tell to type, then the
# commands that people try in four roles (programs, LLM serving, bring-up of the device, administration of a cluster).
# Prints each command line, and its output if it fails. Skipped (77) without root, debootstrap or a Debian mirror.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: first_hour.sh SOURCE_FOLDER [RELEASE [ROOT_FOLDER]]

RELEASE is bookworm by default. With ROOT_FOLDER the root, and the build in it, is kept there and used again.
TEXT
}

skip() {
  echo "first_hour.sh: skipped: $*"
  exit 77
}

inside() {
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive \
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 CCACHE_DIR=/ccache bash -o pipefail -c "cd /src && $1"
}

failures=0
# try COMMAND_LINE: must succeed.
try() {
  if inside "$1" >"$output" 2>&1 </dev/null; then
    echo "ok      $1"
  else
    echo "FAILED  $1 (status $?)"
    sed 's/^/        | /' "$output"
    failures=$((failures + 1))
  fi
}

# refuse TEXT COMMAND_LINE: must fail with a message that has TEXT.
refuse() {
  if inside "$2" >"$output" 2>&1 </dev/null; then
    echo "FAILED  $2 (it succeeds)"
  elif ! grep -qF -- "$1" "$output"; then
    echo "FAILED  $2 (its message does not have \"$1\")"
  else
    echo "ok      $2 (refused: $(grep -F -m 1 -- "$1" "$output"))"
    return
  fi
  sed 's/^/        | /' "$output"
  failures=$((failures + 1))
}

# print PATTERN COMMAND_LINE: must succeed and print PATTERN.
print() {
  try "$2"
  if ! grep -qE -- "$1" "$output"; then
    echo "FAILED  $2 (it does not print \"$1\")"
    sed 's/^/        | /' "$output"
    failures=$((failures + 1))
  fi
}

role() {
  echo "== $*"
}

clean_up() {
  for mounted in ccache dev sys proc; do
    ! mountpoint -q "$root/$mounted" || umount -l "$root/$mounted"
  done
  [[ -n "$keep" ]] || rm -rf --one-file-system "$root"
  rm -f "$output"
}

# The mirror of this machine's own Debian release.
mirror() {
  # shellcheck disable=SC2016 # the names are apt's
  apt-get indextargets --format '$(COMPONENT) $(REPO_URI)' 'Created-By: Packages' | awk '$1 == "main" { print $2; exit }'
}

make_root() {
  local from
  if [[ ! -e "$root/etc/debian_version" ]]; then
    from="$(mirror)"
    [[ -n "$from" ]] || skip "apt names no Debian mirror here"
    debootstrap --variant=minbase "$release" "$root" "$from" >"$output" 2>&1 ||
      skip "debootstrap found no $release at $from: $(tail -n 1 "$output")"
  fi
  mount -t proc proc "$root/proc"
  mount --bind /sys "$root/sys"
  mount --bind /dev "$root/dev"
  cp /etc/resolv.conf "$root/etc/" 2>/dev/null || true
  mkdir -p "$root/src"
  tar -C "$source" --exclude='./build*' --exclude=./.git -c . | tar -C "$root/src" -x
}

# The lines after "$ " in a document that match a pattern, without comments and sudo.
documented() {
  sed -n 's/^\$ \(sudo \)\?//p' "$source/$1" | grep -E -- "$2" | sed 's/  *#.*//' || {
    echo "FAILED  $1 has no command line that matches $2" >&2
    exit 1
  }
}

build() {
  role "README and docs/install.md"
  inside 'apt-get -q update' >"$output" 2>&1 || skip "apt-get update fails: $(tail -n 1 "$output")"
  # As in root.sh: the objects that are compiled in roots are kept there.
  if [[ -n "${GBA_ROOT_CCACHE:-}" ]]; then
    mkdir -p "$GBA_ROOT_CCACHE/$release" "$root/ccache"
    mount --bind "$GBA_ROOT_CCACHE/$release" "$root/ccache"
    try "apt-get -q -y install --no-install-recommends ccache"
  fi
  local line
  # Without the packages for tests and benchmarks, and so without these.
  while read -r line; do
    try "${line/apt install/apt-get -q -y install --no-install-recommends}"
  done < <(documented docs/install.md '^apt install [^.]' | grep -v libgtest-dev)
  line="$(documented README.md '^cmake -B build')"
  try "${line/-B build/-B build -DGBA_TESTS=OFF -DGBA_BENCH=OFF}"
  # shellcheck disable=SC2016 # the marks of Markdown
  sed -n '/^```c$/,/^```$/{/^```/d;p}' "$source/README.md" >"$root/src/hello.c"
  while read -r line; do
    try "${line/mpirun/mpirun --oversubscribe}"
  done < <(documented README.md '^(build/bin/|mpirun )')
}

use_programs() {
  role "a programmer of OpenSHMEM"
  print "libshmem [0-9.]+" "build/bin/oshrun --version"
  print "libshmem [0-9.]+" "build/bin/oshrun -V"
  print "SHMEM_SYMMETRIC_SIZE" "build/bin/shmem_info"
  print "^commit " "build/bin/shmem_info --build"
  print '"schema"' "build/bin/shmem_info --json | python3 -m json.tool"
  print '"event":"start"' "SHMEM_INFO=json build/bin/oshrun -n 2 ./hello"
  print "oshcc|gcc|cc" "build/bin/oshcc --showme"
  print "tune_barrier [0-9.]+" "build/bin/tune_barrier --version"
  refuse "srun --mpi=pmix" "SLURM_STEP_ID=0 SLURM_NTASKS=4 ./hello"
  refuse "SHMEM_BOOTSTRAP" "PMI_RANK=0 PMI_SIZE=4 ./hello"
  # shellcheck disable=SC2016 # expanded by that script
  printf '#!/bin/sh\nSHMEM_HOST_ID=$1 exec sh -c "$2"\n' >"$root/src/fake_rsh"
  chmod +x "$root/src/fake_rsh"
  print "PE 3 has 2" "build/bin/oshrun --rsh ./fake_rsh -H kiwi:2,lemon:2 ./hello"
  printf 'kiwi slots=2\nlemon:1\n' >"$root/src/hosts"
  print "PE 2 has 1" "SHMEM_RSH=./fake_rsh build/bin/oshrun --hostfile hosts ./hello"
  refuse "SHMEM_NETWORK_REQUIRE=rdma" "SHMEM_NETWORK_REQUIRE=rdma build/bin/oshrun --rsh ./fake_rsh -H kiwi,lemon ./hello"
  refuse "still running: PEs 0, 1" "build/bin/oshrun --timeout 1 -n 2 sleep 100"
  print "NUMA node" "build/bin/oshrun --report-bindings --bind core -n 2 true"
  print "PE 1 has 0" "SHMEM_DEBUG=1 build/bin/oshrun -n 2 ./hello"
  try "make -C examples OSHCC=/src/build/bin/oshcc OSHCXX=/src/build/bin/oshc++ OUT=/tmp"
  printf 'SHMEM_GBA = of\n' >"$root/src/wrong.conf"
  refuse "wrong.conf:1: SHMEM_GBA=of" "SHMEM_CONFIG_FILE=wrong.conf build/bin/oshrun -n 2 ./hello"
  try "PKG_CONFIG_PATH=build/lib/pkgconfig pkg-config --cflags --libs shmem"
}

use_python() {
  role "an engineer of LLM serving"
  print "PASS" "build/bin/oshrun -n 4 --gba fake build/bin/kv_shuffle --check"
  print "PASS" "build/bin/oshrun -n 4 build/bin/kv_shuffle --check --plan balanced --model Llama-3-8B --report load.svg"
  try "PYTHONPATH=build/lib/python python3 -c 'import shmem_kv; help(shmem_kv)'"
  try "PYTHONPATH=build/lib/python build/bin/oshrun -n 2 python3 -c 'import shmem_kv as s; s.init(1 << 20); s.barrier_all(); s.finalize()'"
}

use_device() {
  role "bring-up of the device"
  local gba="build/bin/gba" device=vfio-user:/tmp/first_hour.sock
  chroot "$root" /src/build/bin/gba-fake-device --socket /tmp/first_hour.sock >"$root/tmp/device.log" 2>&1 &
  local pid=$!
  for ((tries = 0; tries < 100; tries++)); do
    grep -q "ready on" "$root/tmp/device.log" && break
    sleep 0.1
  done
  try "$gba list"
  print "IOMMU|iommu" "$gba check || true"
  print "group" "$gba info $device"
  try "$gba info --json $device | python3 -m json.tool"
  try "$gba selftest $device"
  try "$gba bench $device"
  try "$gba groups $device"
  try "$gba reset --yes $device"
  print '"schema"' "$gba check --json $device"
  print "GBA1" "$gba regs $device"
  print "condition ok" "$gba monitor --count 1 $device"
  print "==== versions" "$gba report $device"
  print "two members" "$gba selftest --peer $device $device"
  print "here:" "$gba bench --rounds 1000 --peer $device $device"
  print "has" "GBA_DEVICE=$device SHMEM_GBA=require build/bin/oshrun -n 4 ./hello"
  kill "$pid"
  wait "$pid" || true
}

use_as_administrator() {
  role "an administrator of a cluster"
  try "cmake --install build --prefix /opt/shmem --strip"
  print "has" "/opt/shmem/bin/oshcc -o /tmp/hello hello.c && /opt/shmem/bin/oshrun -n 2 /tmp/hello"
  printf 'SHMEM_BARRIER_TIMEOUT = 600  # all jobs\n' >"$root/etc/libshmem.conf"
  print "600 +/etc/libshmem.conf:1" "/opt/shmem/bin/shmem_info"
  rm "$root/etc/libshmem.conf"
  try "PKG_CONFIG_PATH=\$(ls -d /opt/shmem/lib*/pkgconfig /opt/shmem/lib/*/pkgconfig 2>/dev/null | head -1) pkg-config --libs shmem gba"
  local page
  for page in oshrun shmem_info gba kv_shuffle; do
    try "ls /opt/shmem/share/man/man1/$page.1"
  done
  try "cmake --build build --target uninstall"
  refuse "No such file" "ls /opt/shmem/bin/oshrun"
}

[[ $# -ge 1 && $# -le 3 ]] || {
  usage >&2
  exit 2
}
source="$1"
release="${2:-bookworm}"
keep="${3:-}"
[[ "$(id -u)" == 0 ]] || skip "only root can make a root folder"
command -v debootstrap >/dev/null || skip "debootstrap is not installed (apt-get install debootstrap)"
root="${keep:-$(mktemp -d)}"
output="$(mktemp)"
mkdir -p "$root"
trap clean_up EXIT
make_root
build
use_programs
use_python
use_device
use_as_administrator
echo "== $failures command lines failed on $release"
[[ "$failures" == 0 ]]
