// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/private_memory.hpp"

#include <sys/mman.h>

#include <string>

namespace shmem::kv {

void Unmap::operator()(std::byte* memory) const {
  ::munmap(memory, size);
}

Result<void> PrivateMemory::reserve(std::size_t bytes) {
  if (bytes <= memory_.get_deleter().size) {
    return {};
  }
  memory_ = {};
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return fail(std::errc::not_enough_memory,
                "no " + std::to_string(bytes) + " bytes of memory besides the symmetric heap");
  }
  memory_ = {static_cast<std::byte*>(memory), Unmap{bytes}};
  return {};
}

}  // namespace shmem::kv
