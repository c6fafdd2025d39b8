// SPDX-License-Identifier: Apache-2.0
#include "python/core/kept_memory.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace shmem_kv {
namespace {

constexpr std::size_t kLargestPage = std::size_t{2} << 20;  // a heap is a multiple of it, and begins at one

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::size_t behind_boundary(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address) % kLargestPage;
}

/// Address space, at `place` if that is not null and free.
std::byte* reserve(std::byte* place, std::size_t size) {
  const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (place != nullptr ? MAP_FIXED_NOREPLACE : 0);
  void* reserved = ::mmap(place, size, PROT_NONE, how, -1, 0);
  if (reserved == MAP_FAILED) {
    fail("mmap");
  }
  return static_cast<std::byte*>(reserved);
}

}  // namespace

std::shared_ptr<KeptMemory> KeptMemory::take(std::byte* address, std::size_t size) {
  std::shared_ptr<KeptMemory> kept(new KeptMemory);
  kept->place_ = address - behind_boundary(address);
  kept->size_ = (size + behind_boundary(address) + kLargestPage - 1) / kLargestPage * kLargestPage;

  std::byte* const spare = reserve(nullptr, kept->size_ + kLargestPage);
  std::byte* const away = spare + (kLargestPage - behind_boundary(spare)) % kLargestPage;
  std::byte* const end = spare + kept->size_ + kLargestPage;
  if (::mremap(kept->place_, kept->size_, kept->size_, MREMAP_MAYMOVE | MREMAP_FIXED, away) == MAP_FAILED) {
    const std::system_error error(errno, std::generic_category(), "mremap");
    ::munmap(spare, kept->size_ + kLargestPage);
    throw error;
  }
  kept->now_ = away;
  if (away > spare) {
    ::munmap(spare, static_cast<std::size_t>(away - spare));
  }
  if (end > away + kept->size_) {
    ::munmap(away + kept->size_, static_cast<std::size_t>(end - away) - kept->size_);
  }
  return kept;
}

KeptMemory::~KeptMemory() {
  if (now_ != nullptr) {
    ::munmap(now_, size_);
  }
}

void KeptMemory::put_back() {
  // Only mmap has a flag not to replace what another thread has mapped there in the meantime.
  reserve(place_, size_);
  if (::mremap(now_, size_, size_, MREMAP_MAYMOVE | MREMAP_FIXED, place_) == MAP_FAILED) {
    fail("mremap");
  }
  now_ = place_;
}

}  // namespace shmem_kv
