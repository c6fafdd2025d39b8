// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "kv/exchange/holder_blocks.hpp"
#include "shmem/memory/memory_limit.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace shmem::exchange {
namespace {

/// Pages that are taken at once: a moment, in which no put is answered.
constexpr std::uint64_t kGrowth = std::uint64_t{8} << 20;
/// What is left for other things of this process, and for other processes.
constexpr std::uint64_t kSpare = std::uint64_t{32} << 20;
/// Between two looks at how much memory there is, when there was none.
constexpr std::chrono::milliseconds kAgain{200};

/// Gives the pages memory. False: the machine has no more.
bool populate(std::byte* begin, std::uint64_t bytes) {
  if (::madvise(begin, bytes, MADV_POPULATE_WRITE) == 0) {
    return true;
  }
  if (errno != EINVAL) {
    return false;
  }
  constexpr std::uint64_t kPageOfMemory = 4096;
  for (std::uint64_t at = 0; at < bytes; at += kPageOfMemory) {
    *static_cast<volatile std::byte*>(begin + at) = std::byte{0};
  }
  return true;
}

}  // namespace

std::optional<Part> HolderMemory::grow(std::uint64_t least) {
  const std::uint64_t left = bytes_ - grown_;
  const auto now = std::chrono::steady_clock::now();
  if (least > left || now < next_look_) {
    return std::nullopt;
  }
  const std::uint64_t more = std::min(left, std::max(least, kGrowth));
  if (memory_left() < more + kSpare || !populate(memory_ + grown_, more)) {
    next_look_ = now + kAgain;
    return std::nullopt;
  }
  const Part part{grown_, grown_ + more};
  grown_ = part.end;
  return part;
}

}  // namespace shmem::exchange
