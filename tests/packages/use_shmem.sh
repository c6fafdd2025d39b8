#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds OpenSHMEM programs by each wrapper, by pkg-config and by CMake, and runs them as PEs. Uses the commands from
# PATH; pkg-config and CMake find libshmem through their own variables.
set -euo pipefail

[[ $# == 1 ]] || {
  echo "Usage: use_shmem.sh WORK_FOLDER" >&2
  exit 2
}
mkdir -p "$1"
cd "$1"
unset CC CXX OSHCC OSHCXX OSHMEM_CC OSHMEM_CXX SHMEM_CC SHMEM_CXX SMACC SMACXX LD_LIBRARY_PATH
export SHMEM_SYMMETRIC_SIZE=1M

die() {
  echo "use_shmem.sh: $*"
  exit 1
}

expect() {
  local what="$1" pattern="$2"
  shift 2
  local output
  output="$("$@" 2>&1)" || die "$what: $* failed: $output"
  # shellcheck disable=SC2053 # a pattern
  [[ "$output" == $pattern ]] || die "$what: $* printed \"$output\", not $pattern"
}

runs_as_pes() {
  expect "PEs of $1" "*PE 1 of 2*" oshrun -n 2 --gba off --timeout 60 "$1"
}

cat >hello.c <<'TEXT'
#include <mpp/shmem.h>
#include <pshmem.h>
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>
int main(void) {
  shmem_init();
  printf("PE %d of %d\n", pshmem_my_pe(), shmem_n_pes());
  shmem_finalize();
  return 0;
}
TEXT
cat >kernel.cpp <<'TEXT'
#include <include/internal/device/sync/shmemi_device_p2p.h>
#include <internal/device/sync/shmemi_device_barrier.h>
#include <kernel_operator.h>
#include <shmem.h>
#include <shmem_api.h>
#include <stdio.h>
static void kernel(shmemx_core_t*, void*) {
  shmemi_team_t* team = shmemi_get_state()->team_pools[SHMEM_TEAM_WORLD];
  shmemi_barrier_npu_v3(team);
  AscendC::CrossCoreSetFlag<0x0, PIPE_MTE3>(8);
  AscendC::CrossCoreWaitFlag(8);
}
int main() {
  shmem_init();
  if (shmemx_launch(2, kernel, nullptr) != 0) return 1;
  printf("PE %d of %d\n", shmem_my_pe(), shmem_n_pes());
  return shmem_finalize();
}
TEXT
cp hello.c hello.cpp
echo "== wrappers"
oshcc -Wall -Werror -o by_oshcc hello.c
runs_as_pes ./by_oshcc
for wrapper in oshc++ oshCC oshcxx; do
  "$wrapper" -Wall -Werror -c hello.cpp
  "$wrapper" -o "by_$wrapper" hello.o
  runs_as_pes "./by_$wrapper"
done
echo "== kernels with Ascend SHMEM's names"
headers="$(oshcc --showme:incdirs)"
oshc++ -Wall -Werror "-I$headers/ascend" "-I$headers/ascend/cann" -o by_ascend kernel.cpp
runs_as_pes ./by_ascend
# shellcheck disable=SC2046 # several words
{
  cc -c hello.c $(oshcc --showme:compile)
  cc -o by_flags hello.o $(oshcc --showme:link)
}
runs_as_pes ./by_flags
ln -sf "$(command -v oshcc)" other-name
expect "a link to oshcc" "other-name: libshmem *" ./other-name --showme:version
expect "the compiler by a variable" "ccache no-such-cc *x.c *-lshmem -lm" env OSHMEM_CC="ccache no-such-cc" oshcc --showme x.c
for variable in SHMEM_CC SMACC; do
  expect "the compiler by SOS's variable $variable" "no-such-cc" env CC=other "$variable=no-such-cc" oshcc --showme:command
done
expect "no call of itself" "$(oshcc --showme:command)" env OSHCC=oshcc OSHMEM_CC=/usr/bin/shmemcc CC="ccache oshcc" oshcc --showme:command
expect "oshcc -v" "*version*" oshcc -v
expect "preprocessing" "*shmem_init*" oshcc -E hello.c
! oshcc -static hello.c 2>refusal || die "oshcc links statically"
grep -q "without -static" refusal || die "oshcc -static says: $(<refusal)"
! oshcc --showme:nothing 2>refusal || die "oshcc knows --showme:nothing"
[[ "$(oshcc -showlibs)" == "$(oshcc --showme:link)" ]] || die "oshcc -showlibs prints \"$(oshcc -showlibs)\""
expect "shmem_info" "libshmem *" shmem_info

echo "== other libraries' names"
cat >root.c <<'TEXT'
#include <math.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  shmem_init();
  const double root = sqrt(atof(argc > 1 ? argv[1] : "16"));
  printf("PE %d of %d, %g\n", shmem_my_pe(), shmem_n_pes(), root);
  shmem_finalize();
  return 0;
}
TEXT
links_with_libshmem() {
  [[ "$(readelf -d "$1" | grep -E 'libshmem|libsma|liboshmem')" == *"[libshmem.so."*"]" ]] ||
    die "$1 is linked with $(readelf -d "$1" | grep NEEDED)"
}
oshcc -Wall -Werror -o with_libm root.c
runs_as_pes ./with_libm
libdir="$(oshcc --showme:libdirs)"
libdir="${libdir%% *}"
# shellcheck disable=SC2046 # several words
cc -o by_sma_alone root.c $(oshcc --showme:compile) -L"$libdir" -lsma -lm
links_with_libshmem ./by_sma_alone
for name in sma oshmem; do
  oshcc -Wall -Werror -o "by_$name" root.c -l$name
  links_with_libshmem "./by_$name"
  runs_as_pes "./by_$name"
  # No path of ours but the folder of the names: libshmem has to find libgba.
  # shellcheck disable=SC2046 # several words
  cc -o "by_folder_of_$name" root.c $(oshcc --showme:compile) -L"$libdir/libshmem" -l$name -lm
  links_with_libshmem "./by_folder_of_$name"
  expect "PEs of by_folder_of_$name" "*PE 1 of 2, 3*" env LD_LIBRARY_PATH="$libdir" oshrun -n 2 --gba off --timeout 60 "./by_folder_of_$name" 9
done
expect "kv_shuffle" "*kv_shuffle: PASS*" oshrun -n 2 --gba off kv_shuffle --check --rounds 1 --plan balanced --blocks 8 --page 16

if command -v mpirun >/dev/null && command -v mpicc >/dev/null; then
  echo "== with MPI"
  cat >both.c <<'TEXT'
#include <mpi.h>
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>
int main(int argc, char** argv) {
  shmemx_init_attr_t attr = SHMEMX_INIT_ATTR_INITIALIZER;
  MPI_Init(&argc, &argv);
  if (shmemx_init_attr(SHMEMX_INIT_WITH_MPI, &attr) != 0) return puts(shmemx_error_text()), 1;
  printf("PE %d of %d\n", shmem_my_pe(), shmem_n_pes());
  shmem_finalize();
  return MPI_Finalize();
}
TEXT
  CC=mpicc oshcc -Wall -Werror -o both both.c
  # shellcheck disable=SC2046 # several words
  mpicc -Wall -Werror -o both_by_pc both.c $(pkg-config --cflags --libs shmem) -Wl,-rpath,"$(pkg-config --variable=libdir shmem)"
  export OMPI_MCA_plm_rsh_agent=false OMPI_MCA_btl_vader_backing_directory="$PWD" TMPDIR="$PWD"
  for program in ./by_oshcc ./both ./both_by_pc; do
    expect "mpirun $program" "*PE 1 of 2*" mpirun --allow-run-as-root --oversubscribe -np 2 "$program"
  done
fi
if command -v mpiexec.mpich >/dev/null && command -v mpicc.mpich >/dev/null && [[ -f both.c ]]; then
  echo "== with MPICH"
  CC=mpicc.mpich oshcc -Wall -Werror -o both_mpich both.c
  expect "mpiexec.mpich both" "*PE 1 of 2*" mpiexec.mpich -n 2 ./both_mpich
fi

echo "== pkg-config"
# shellcheck disable=SC2046 # several words
cc root.c -o by_pc $(pkg-config --cflags --libs shmem) -Wl,-rpath,"$(pkg-config --variable=libdir shmem)"
runs_as_pes ./by_pc
expect "SOS's variable exec_prefix" "$(pkg-config --variable=prefix shmem)" pkg-config --variable=exec_prefix shmem
expect "SOS's variable cxxflags" "-I$(pkg-config --variable=includedir shmem)" pkg-config --variable=cxxflags shmem

echo "== find_package"
cat >CMakeLists.txt <<'TEXT'
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(shmem 0.1 REQUIRED)
add_executable(by_cmake hello.c)
target_link_libraries(by_cmake shmem::shmem)
enable_testing()
add_test(NAME hello COMMAND shmem::oshrun -n 2 --gba off $<TARGET_FILE:by_cmake>)
TEXT
rm -rf b
cmake -B b . >cmake.log || die "$(<cmake.log)"
cmake --build b >cmake.log || die "$(<cmake.log)"
runs_as_pes b/by_cmake
expect "a test by oshrun" "*100% tests passed*" ctest --test-dir b
