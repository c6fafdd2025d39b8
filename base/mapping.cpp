// SPDX-License-Identifier: Apache-2.0
#include "base/mapping.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cassert>
#include <cerrno>
#include <cstdint>
#include <limits>

#include "base/size_text.hpp"

namespace base {

namespace {

Error cannot_map(int error, std::size_t size) {
  return fail_errno(error, "cannot map " + size_text(size) + " of shared memory");
}

std::byte* map(void* where, std::size_t size, int protection, int flags, int fd) {
  void* data = ::mmap(where, size, protection, flags, fd, 0);
  return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

/// `size` bytes of address space to be mapped over, the one at `aligned` at a multiple of `alignment`; null if there
/// are none.
std::byte* reserve(std::size_t size, std::size_t alignment, std::size_t aligned) {
  std::byte* start = map(nullptr, size + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (start == nullptr) {
    return nullptr;
  }
  const std::size_t before = -(reinterpret_cast<std::uintptr_t>(start) + aligned) & (alignment - 1);
  if (before > 0) {
    ::munmap(start, before);
  }
  ::munmap(start + before + size, alignment - before);
  return start + before;
}

Result<Mapping> map_part(int fd, std::size_t size, std::size_t offset, int protection) {
  assert(size > 0);
  void* const data = ::mmap(nullptr, size, protection, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (data == MAP_FAILED) {
    return cannot_map(errno, size);
  }
  ::madvise(data, size, MADV_DONTDUMP);
  return Mapping(data, size);
}

}  // namespace

Mapping::Mapping(void* mapped, std::size_t size) noexcept
    : data_(mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped)), size_(data_ == nullptr ? 0 : size) {}

Mapping::~Mapping() {
  if (data_ != nullptr) {
    ::munmap(data_, size_);
  }
}

Result<Mapping> Mapping::share(int fd, std::size_t size, std::size_t alignment, std::size_t aligned) {
  assert(size > 0 && std::has_single_bit(alignment));
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (size > std::numeric_limits<std::size_t>::max() - alignment - page) {
    return cannot_map(ENOMEM, size);
  }
  const std::size_t whole = (size + page - 1) & ~(page - 1);

  std::byte* where = nullptr;
  if (alignment > page) {
    where = reserve(whole, alignment, aligned);
    if (where == nullptr) {
      return cannot_map(errno, size);
    }
  }
  std::byte* data = map(where, whole, PROT_READ | PROT_WRITE, MAP_SHARED | (where == nullptr ? 0 : MAP_FIXED), fd);
  if (data == nullptr) {
    const int error = errno;
    if (where != nullptr) {
      ::munmap(where, whole);
    }
    return cannot_map(error, size);
  }
  // A core dump would otherwise allocate every page of a sparse file. It is no failure if this is not supported.
  ::madvise(data, whole, MADV_DONTDUMP);
  return Mapping(data, whole);
}

Result<Mapping> Mapping::share_part(int fd, std::size_t size, std::size_t offset) {
  return map_part(fd, size, offset, PROT_READ | PROT_WRITE);
}

Result<Mapping> Mapping::read_only(int fd, std::size_t size, std::size_t offset) {
  return map_part(fd, size, offset, PROT_READ);
}

}  // namespace base
