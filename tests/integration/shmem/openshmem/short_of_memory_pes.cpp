// SPDX-License-Identifier: Apache-2.0
// PEs that get no memory for a collective call: short_of_memory_pes alltoall|alltoalls|scan|fcollect
#include <shmem.h>
#include <shmemx.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

namespace {

/// Allocations of C++ of this size or more fail.
std::atomic<std::size_t> most{SIZE_MAX};

constexpr std::size_t kPart = std::size_t{16} << 10;

int call(const std::string& name, double* to, const double* from) {
  if (name == "alltoall") {
    return shmem_double_alltoall(SHMEM_TEAM_WORLD, to, from, 512);
  }
  if (name == "alltoalls") {
    return shmem_double_alltoalls(SHMEM_TEAM_WORLD, to, from, 1, 8, 1024);
  }
  if (name == "scan") {
    return shmem_double_sum_inscan(SHMEM_TEAM_WORLD, to, from, 4096);
  }
  return shmem_double_fcollect(SHMEM_TEAM_WORLD, to, from, 4096);
}

}  // namespace

// NOLINTBEGIN(cppcoreguidelines-owning-memory): these are what owners use
void* operator new(std::size_t size) {
  void* memory = size < most.load(std::memory_order_relaxed) ? std::malloc(size) : nullptr;
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
// NOLINTEND(cppcoreguidelines-owning-memory)

int main(int, char** argv) {
  shmem_init();
  const auto room = static_cast<std::size_t>(shmem_n_pes()) * 8 * 4096;
  auto* to = static_cast<double*>(shmem_malloc(room * sizeof(double)));
  auto* from = static_cast<double*>(shmem_calloc(room, sizeof(double)));
  if (call(argv[1], to, from) != 0) {
    return 2;
  }
  shmem_barrier_all();
  most = kPart;
  const int status = call(argv[1], to, from);
  most = SIZE_MAX;
  std::printf("PE %d: %s gave %s\n", shmem_my_pe(), argv[1], status == 0 ? "0" : shmemx_error_text());
  std::fflush(stdout);
  std::_Exit(status == 0 ? 0 : 3);
}
