#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The first hour of a new user in a bare root of a Debian release: what README and docs/install.md tell to type, then the
# commands that people try in four roles (programs, LLM serving, bring-up of the device, administration of a cluster).
# Prints each command line, and its output if it fails. Skipped (77) without root, debootstrap or a Debian mirror.
set -euo pipefail
# shellcheck source=tests/packages/root.sh
source "$(dirname "${BASH_SOURCE[0]}")/root.sh"

usage() {
  cat <<'TEXT'
Usage: first_hour.sh SOURCE_FOLDER [RELEASE [ROOT_FOLDER]]

RELEASE is bookworm by default. With ROOT_FOLDER the root, and the build in it, is kept there and used again.
TEXT
}

# For sed: the line begins with the programs of the build in PATH, and the program of its page is the first one.
# shellcheck disable=SC2016 # expanded in the root
built='s/^/PATH=$PWD\/build\/bin:$PATH; /;s/\.\/program/.\/hello/'

failures=0
# try COMMAND_LINE: must succeed.
try() {
  if typed "$1" >"$output" 2>&1 </dev/null; then
    echo "ok      $1"
  else
    echo "FAILED  $1 (status $?)"
    sed 's/^/        | /' "$output"
    failures=$((failures + 1))
  fi
}

# refuse TEXT COMMAND_LINE: must fail with a message that has TEXT.
refuse() {
  if typed "$2" >"$output" 2>&1 </dev/null; then
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

# The lines after "$ " in a document that match a pattern, without comments and sudo.
documented() {
  sed -n 's/^\$ \(sudo \)\?//p' "$source/$1" | grep -E -- "$2" | sed 's/  *#.*//' || {
    echo "FAILED  $1 has no command line that matches $2" >&2
    exit 1
  }
}

# two_nodes DOCUMENT TEXT SED_SCRIPT: the lines of the block with TEXT, those of kiwi in the background, then those of lemon,
# whose status counts. It begins with a command of its own, since typed() puts one before it that is not for kiwi only.
two_nodes() {
  local lines
  lines="$(block "$1" "$2" | sed -e "$3")"
  printf 'true\n{ export SHMEM_HOST_ID=kiwi\n%s\nwait; } &\nsleep 4\nexport SHMEM_HOST_ID=lemon\n%s\n' \
    "$(sed -n 's/^kiwi\$ *//p' <<<"$lines")" "$(sed -n 's/^lemon\$ *//p' <<<"$lines")"
}

# The first block of code of a document that has a line of this text.
block() {
  awk -v text="$2" '/^```/ { if (inside && found) exit; inside = !inside; found = 0; kept = ""; next }
    inside { kept = kept $0 "\n"; if (index($0, text)) found = 1 }
    END { if (found) printf "%s", kept; exit !found }' "$source/$1" || {
    echo "FAILED  $1 has no block of code with $2" >&2
    exit 1
  }
}

# each_line COMMANDS [SED_SCRIPT]: tries the lines that COMMANDS prints, after SED_SCRIPT, which fits them to the root.
each_line() {
  local line
  [[ -n "$1" ]] || exit 1
  while read -r line; do
    try "$line"
  done < <(sed -e "${2:-}" <<<"$1")
}

build() {
  role "README and docs/install.md"
  # Without the packages for tests and benchmarks, and so without these.
  each_line "$(documented docs/install.md '^apt install [^.]' | grep -v libgtest-dev)" \
    's/^apt install/apt-get -q -y install --no-install-recommends/'
  each_line "$(documented README.md '^cmake -B build')"
  block README.md "#include <shmem.h>" >"$root/src/hello.c"
  each_line "$(documented docs/launching.md '^build/bin/oshcc')"
  each_line "$(documented README.md '^mpirun ')"
}

use_programs() {
  local lines
  role "a programmer of OpenSHMEM"
  try "build/bin/oshcc examples/hello.c -o example && build/bin/oshrun -n 4 ./example"
  print "libshmem [0-9.]+" "build/bin/oshrun --version"
  print "libshmem [0-9.]+" "build/bin/oshrun -V"
  print "SHMEM_SYMMETRIC_SIZE" "build/bin/shmem_info"
  print "^commit " "build/bin/shmem_info --build"
  print '"schema"' "build/bin/shmem_info --json | python3 -m json.tool"
  print '"event":"start"' "SHMEM_INFO=json build/bin/oshrun -n 2 ./hello"
  print "oshcc|gcc|cc" "build/bin/oshcc --showme"
  print "tune_barrier [0-9.]+" "build/bin/tune_barrier --version"
  print "tune_collective [0-9.]+" "build/bin/tune_collective --version"
  try "make -C examples OUT=/tmp"
  each_line "$(documented docs/examples.md '^oshrun')" "s/ \\.\\// \\/tmp\\//;$built"
  each_line "$(documented docs/from-openshmem.md '^(SHMEM_[^ ]+ )?oshrun -n')" "$built"
  each_line "$(documented docs/from-openshmem.md '^(mpirun|shmem_info)')" "$built"
  mapfile -t lines < <(documented docs/examples.md '^gba-fake-device|^lossless_barrier')
  print "lossless_barrier: correct" "PATH=\$PWD/build/bin:\$PWD/build/examples:\$PATH; ${lines[0]} sleep 1; ${lines[1]}; \
status=\$?; kill \$!; exit \$status"
  block docs/from-ascend.md "aclshmemx_init_attr_t attr" >"$root/src/ring.cpp"
  mapfile -t lines < <(documented docs/from-ascend.md 'ring.cpp|/ring ' | sed "$built")
  print "PE 2: error 0" "${lines[0]} && ${lines[1]}"
  each_line "$(documented docs/install.md '^cc hello.c')"
  print "PE 1 has 0" "SHMEM_DEBUG=1 build/bin/oshrun -n 2 ./hello"
  printf 'SHMEM_GBA = of\n' >"$root/src/wrong.conf"
  refuse "wrong.conf:1: SHMEM_GBA=of" "SHMEM_CONFIG_FILE=wrong.conf build/bin/oshrun -n 2 ./hello"
  refuse "still running: PEs 0, 1" "build/bin/oshrun --timeout 1 -n 2 sleep 100"
  print "NUMA node" "build/bin/oshrun --report-bindings --bind core -n 2 true"
  try "apt-get -q -y install --no-install-recommends gdb valgrind"
  print "PE 1 has 0" "build/bin/oshrun -n 2 gdb -batch -ex run ./hello"
  each_line "$(documented docs/debugging.md 'oshrun .*--(debugger|valgrind|profile)|^SHMEM_TRACE')" "$built"
  print "Breakpoint 1, MPIR_Breakpoint" "$(documented docs/debugging.md '^gdb .*MPIR' | sed "$built")"
}

launch() {
  role "docs/launching.md"
  local port=$((20000 + $$ % 10000))
  refuse "srun --mpi=pmix" "SLURM_STEP_ID=0 SLURM_NTASKS=4 ./hello"
  refuse "SHMEM_BOOTSTRAP" "PMI_RANK=0 PMI_SIZE=4 ./hello"
  # Hosts without ssh: a node is what has a SHMEM_HOST_ID.
  # shellcheck disable=SC2016 # expanded by that script
  printf '#!/bin/sh\nSHMEM_HOST_ID=$1 exec sh -c "$2"\n' >"$root/src/fake_rsh"
  chmod +x "$root/src/fake_rsh"
  printf 'kiwi slots=4\nlemon:4\n' >"$root/src/hosts"
  try "cp hello root && cp hello worker"
  each_line "$(documented docs/launching.md '^(SHMEM_INFO=1 )?build/bin/oshrun')" \
    's/"ssh -p 2222"/.\/fake_rsh/;s/^/SHMEM_RSH=.\/fake_rsh /'
  print "PE 3 has 2" "SHMEM_RSH=./fake_rsh build/bin/oshrun -H kiwi:2,lemon:2 ./hello"
  print "PE 7 has 6" "SHMEM_RSH=./fake_rsh build/bin/oshrun --hostfile hosts ./hello"
  refuse "SHMEM_NETWORK_REQUIRE=rdma" "SHMEM_NETWORK_REQUIRE=rdma build/bin/oshrun --rsh ./fake_rsh -H kiwi,lemon ./hello"
  each_line "$(documented docs/nodes.md '^oshrun')" 's/^/SHMEM_RSH=.\/fake_rsh build\/bin\//'
  head -c 16 /dev/urandom | base64 >"$root/src/secret"
  local lines
  mapfile -t lines < <(documented docs/launching.md 'SHMEM_UID_(SESSION_ID=127|RANK=0)' | sed "s/:4711/:$port/")
  print "PE 1 has 0" "${lines[0]} && { ${lines[1]}; wait; }"
  print "PE 1 has 0" "$(two_nodes docs/nodes.md 'export SHMEM_BOOTSTRAP' "s/10.0.0.1:7000/127.0.0.1:$((port + 2))/")"
  try "apt-get -q -y install --no-install-recommends mpich"
  mapfile -t lines < <(documented docs/launching.md '10.0.0.1:7000|PMI_RANK' | sed "s/10.0.0.1:7000/127.0.0.1:$((port + 1))/;s/^mpiexec/mpiexec.mpich/")
  print "PE 3 has 2" "${lines[0]} && ${lines[1]}"
  print "PE 3 has 2" "mpirun.openmpi -np 4 ./hello"
  cat >"$root/src/both.c" <<'TEXT'
#include <mpi.h>
#include <shmem.h>
#include <stdio.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  shmem_init();
  int rank, value = shmem_my_pe(), sum;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("PE %d is rank %d of %d: sum %d\n", shmem_my_pe(), rank, shmem_n_pes(), sum);
  shmem_finalize();
  return MPI_Finalize();
}
TEXT
  # shellcheck disable=SC2016 # expanded in the root
  try 'mpicc.mpich both.c -o both $(PKG_CONFIG_PATH=build/lib/pkgconfig pkg-config --cflags --libs shmem) -Wl,-rpath,$PWD/build/lib'
  print "PE 3 is rank 3 of 4: sum 6" "$(documented docs/launching.md 'mpiexec.mpich .*both')"
}

use_python() {
  role "an engineer of LLM serving"
  local with_module="PYTHONPATH=build/lib/python"
  printf '{"timestamp": %d, "input_length": %d, "output_length": 300, "hash_ids": [0]}\n' 0 2000 10 900 20 3100 30 450 \
    40 1200 50 5000 60 700 70 1800 >"$root/src/trace.jsonl"
  print "PASS" "build/bin/oshrun -n 4 --gba fake build/bin/kv_shuffle --check"
  print "PASS" "build/bin/oshrun -n 8 build/bin/kv_shuffle --check --trace trace.jsonl --plan balanced --model Llama-3-8B --report load.svg"
  try "$with_module python3 -c 'import shmem_kv; help(shmem_kv)'"
  print "^[0-9.]+$" "$with_module python3 -c 'import shmem_kv; print(shmem_kv.__version__)'"
  try "$with_module build/bin/oshrun -n 2 python3 -c 'import shmem_kv as s; s.init(1 << 20); s.barrier_all(); s.finalize()'"
  print "step 0" "$(documented docs/python.md 'examples/kv_shuffle/')"
  block docs/python.md "import asyncio" >"$root/src/rebalance.py"
  try "$with_module build/bin/oshrun -n 2 python3 rebalance.py"
  each_line "$(documented docs/python.md 'examples/kv/')"
  each_line "$(documented docs/kv_exchange.md 'exchange_router')"
  try "apt-get -q -y install --no-install-recommends curl"
  local lines
  mapfile -t lines < <(documented docs/kv_exchange.md '^kv_exchange serve demo --metrics|^curl ')
  print "pulled_bytes_total" "{ build/bin/${lines[0]} }; sleep 2; ${lines[1]}; status=\$?; kill \$!; exit \$status"
  mapfile -t lines < <(documented docs/kv_exchange.md '^(kv_exchange|echo).* cache')
  print "^hello$" "PATH=\$PWD/build/bin:\$PATH; ${lines[0]} sleep 2; ${lines[1]}; ${lines[2]}; status=\$?; \
{ timeout 2 ${lines[3]} || true; } | grep greeting || status=1; kill \$!; exit \$status"
  mapfile -t lines < <(documented docs/kv_exchange.md '9401')
  print "^live 0 " "PATH=\$PWD/build/bin:\$PATH; ${lines[0]} sleep 2; ${lines[1]}; kill \$!"
  mapfile -t lines < <(documented docs/kv_exchange.md '^SHMEM_EXCHANGE_DIR')
  print " demo$" "mkdir -m 700 -p /run/kv && { SHMEM_EXCHANGE_DIR=/run/kv timeout 20 build/bin/kv_exchange serve demo & } && sleep 2 && \
${lines[0]/kv_exchange/build\/bin\/kv_exchange}"
  print "^hello$" "PATH=\$PWD/build/bin:\$PATH; $(two_nodes docs/kv_exchange.md 'kv_exchange serve demo --listen' \
    "s/kiwi:4711/127.0.0.1:$((20000 + $$ % 10000 + 3))/;s/kv_exchange serve .* &/timeout 20 & sleep 2; echo hello | kv_exchange put demo greeting/")"
  # Among others: an engine whose worker is killed gets a ConnectionError, and starts a new job.
  try "$with_module GBA_BIN=\$PWD/build/bin python3 tests/integration/python/test_jobs.py"
}

# two_ports WORD COMMAND: the same command on two hosts, which are this one.
two_ports() {
  print "$1" "{ build/bin/gba $2 --listen 127.0.0.1:18710 & }; sleep 1; build/bin/gba $2 --connect 127.0.0.1 && wait \$!"
}

use_device() {
  role "bring-up of the device"
  local gba="build/bin/gba" named=vfio-user:/tmp/first_hour.sock
  refuse "GBA_DEVICE names none" "$gba check"
  rm -f "$root"/tmp/first_hour.sock "$root"/tmp/first_hour.admin
  : >"$root/tmp/device.log"
  # Not by inside(): the background process must be the program itself, so that it can be killed.
  chroot "$root" /src/build/bin/gba-fake-device --socket /tmp/first_hour.sock --admin-socket /tmp/first_hour.admin \
    >"$root/tmp/device.log" 2>&1 &
  device=$!
  for ((tries = 0; tries < 100; tries++)); do
    ! grep -q "ready on" "$root/tmp/device.log" || break
    sleep 0.1
  done
  try "apt-get -q -y install --no-install-recommends pciutils"
  try "lspci -d 1eaf:"
  try "$gba list"
  print "$named: ok" "$gba check $named"
  print '"schema"' "$gba check --json $named | python3 -m json.tool"
  print "group" "$gba info $named"
  print '"schema"' "$gba info --json $named | python3 -m json.tool"
  print '"schema"' "$gba --json info $named | python3 -m json.tool"
  print "GBA1" "$gba regs $named"
  try "$gba selftest $named"
  try "$gba selftest --barriers 100 --json $named | python3 -m json.tool"
  print "two members" "$gba selftest --peer $named $named"
  two_ports "two members" "selftest $named"
  try "$gba bench $named"
  print "here:" "$gba bench --rounds 1000 --peer $named $named"
  two_ports "there:" "bench --rounds 1000 $named"
  print "condition ok" "$gba monitor --count 1 $named"
  each_line "$(documented docs/bring-up.md '^build/bin/gba (groups|monitor|bench|regs)')" \
    "s|vfio-user:/tmp/gba.sock|$named|;s|^|GBA_DEVICE=$named |"
  local faulty
  faulty="$(documented docs/bring-up.md 'gba-fake-device.* --fault')"
  print "faulty.sock: ok" "{ ${faulty/gba.sock/faulty.sock} & } ; sleep 1; $gba check vfio-user:/tmp/faulty.sock; status=\$?; kill \$!; exit \$status"
  try "$gba groups $named"
  try "GBA_DEVICE=$named $gba groups"
  print "==== versions" "$gba report $named"
  try "$gba report --output /tmp/first_hour.report $named && test -s /tmp/first_hour.report && rm /tmp/first_hour.report"
  print "rounds" "$gba help bench"
  refuse "not the privileged one" "$gba reset --yes $named"
  try "$gba reset --yes vfio-user:/tmp/first_hour.admin"
  print "has" "GBA_DEVICE=$named SHMEM_GBA=require build/bin/oshrun -n 4 ./hello"
  kill "$device"
  wait "$device" || true
  device=
}

use_as_administrator() {
  role "an administrator of a cluster"
  local prefix=/opt/shmem lines
  try "cmake --install build --prefix $prefix --strip"
  print "has" "$prefix/bin/oshcc -o /tmp/hello hello.c && $prefix/bin/oshrun -n 2 /tmp/hello"
  printf 'SHMEM_BARRIER_TIMEOUT = 600  # all jobs\n' >"$root/etc/libshmem.conf"
  print "600 +/etc/libshmem.conf:1" "$prefix/bin/shmem_info"
  rm "$root/etc/libshmem.conf"
  mkdir -p "$root/root/.config"
  printf 'SHMEM_BARRIER_TIMEOUT = 700\n' >"$root/root/.config/libshmem.conf"
  print "700 +/root/.config/libshmem.conf:1" "$prefix/bin/shmem_info"
  rm "$root/root/.config/libshmem.conf"
  try "PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --libs shmem gba"
  try "apt-get -q -y install --no-install-recommends environment-modules man-db"
  print "PE 1 has 0" ". /etc/profile.d/modules.sh && module use $prefix/share/modulefiles && module load libshmem && \
oshcc -o /tmp/hello hello.c && oshrun -n 2 /tmp/hello && python3 -c 'import shmem_kv'"
  block docs/from-ascend.md "#include <kernel_operator.h>" | sed '1i #include <shmem.h>
s/^\.\.\.$/int main() { shmem_init(); void* all = shmem_calloc(shmem_n_pes(), 4);/;$a shmem_finalize(); }' >"$root/src/kernel.cpp"
  mapfile -t lines < <(documented docs/from-ascend.md 'kernel.cpp|kernel_cpu.cpp' | sed "s|/usr/share|$prefix/share|;s|oshc|$prefix/bin/oshc|g")
  try "${lines[0]} && ${lines[1]} -o kernel && $prefix/bin/oshrun -n 3 ./kernel"
  # The wrappers, C11, pshmem, kernels, MPI programs, pkg-config and CMake.
  try "PATH=$prefix/bin:\$PATH PKG_CONFIG_PATH=$prefix/lib/pkgconfig CMAKE_PREFIX_PATH=$prefix bash tests/packages/use_shmem.sh /tmp/use_shmem"
  each_line "$(documented docs/bring-up.md '^man ')" 's/$/ | cat/'
  each_page "$prefix/share/man" oshrun shmem_info gba gba-fake-device kv_shuffle gba_open shmem_put
  local program
  for program in oshrun gba kv_shuffle; do
    try "bash -c '. $prefix/share/bash-completion/completions/$program && complete -p $program'"
  done
  try "mkdir -p /etc/systemd/system /etc/tmpfiles.d"
  each_line "$(sed -n 's/^# \(groupadd\|cp\) /\1 /p' "$source/docs/deployment.md")"
  try "sh packaging/slurm/prolog.sh"
  try "cmake --build build --target uninstall"
  refuse "No such file" "ls -d $prefix"
}

# each_page FOLDER NAME...: man finds and formats the pages.
each_page() {
  local page folder="$1"
  shift
  for page in "$@"; do
    print NAME "man --manpath=$folder $page | cat"
  done
}

[[ $# -ge 1 && $# -le 3 ]] || {
  usage >&2
  exit 2
}
source="$1"
release="${2:-bookworm}"
make_root "$release" "${3:-}"
output="$work/typed"
copy_tree "$source"
typed 'apt-get -q update' >"$output" 2>&1 || skip "apt-get update fails: $(tail -n 1 "$output")"
keep_objects "$release"
build
use_programs
launch
use_python
use_device
use_as_administrator
echo "== $failures command lines failed on $release"
[[ "$failures" == 0 ]]
