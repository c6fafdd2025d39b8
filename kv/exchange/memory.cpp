// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/memfd.hpp"

namespace shmem::exchange {
namespace {

/// The kernel copies less than 2 GiB at a time.
constexpr std::uint64_t kMostAtOnce = std::uint64_t{1} << 30;
/// How much memory of one member is mapped. With 64 members (kMostMembers) this takes half of the 2^47 addresses that a
/// process has.
constexpr std::uint64_t kMostMapped = std::uint64_t{1} << 40;

bool has_huge_pages(int fd) {
  struct statfs system {};
  return ::fstatfs(fd, &system) != 0 || system.f_type == HUGETLBFS_MAGIC;
}

}  // namespace

Result<Access> check_memory(int fd, const FileRange& range) {
  // Only files in memory have seals. This asks no file system, so it returns at once for all others, too.
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0) {
    return errno == EBADF
               ? fail_errno(errno, fmt::format("cannot use file descriptor {}", fd))
               : fail(std::errc::operation_not_supported,
                      fmt::format("file descriptor {} is neither a memfd nor a file of tmpfs or hugetlbfs, so "
                                  "others cannot read it as memory",
                                  fd));
  }
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return fail_errno(errno, fmt::format("cannot look at file descriptor {}", fd));
  }
  const auto has = static_cast<std::uint64_t>(status.st_size);
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (range.bytes == 0 || range.offset % page != 0 || range.offset > kMostMemoryBytes ||
      range.bytes > kMostMemoryBytes) {
    return fail(
        std::errc::invalid_argument,
        fmt::format("{} bytes at {} of file descriptor {}: the offset must be a multiple of {}, and the size not 0",
                    range.bytes, range.offset, fd, page));
  }
  if (range.offset + range.bytes > has) {
    return fail(std::errc::file_too_large, fmt::format("{} bytes at {} of file descriptor {}: it has only {}",
                                                       range.bytes, range.offset, fd, has));
  }
  if ((::fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY) {
    return fail(std::errc::permission_denied, fmt::format("file descriptor {} is not open for reading", fd));
  }
  return (seals & F_SEAL_SHRINK) != 0 && !has_huge_pages(fd) ? Access::kMapped : Access::kRead;
}

Result<void> check_shared(int fd, std::size_t size) {
  if (auto sealed = base::check_memfd(fd, size); !sealed) {
    return sealed;
  }
  if (has_huge_pages(fd)) {
    return fail(std::errc::bad_message, fmt::format("file descriptor {} has huge pages, which may be missing", fd));
  }
  return {};
}

std::uint64_t MappingRoom::most() {
  const auto pages = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES));
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return std::min(2 * pages * page, kMostMapped);
}

std::shared_ptr<void> MappingRoom::take(std::uint64_t bytes) {
  // Relaxed: only the number matters.
  std::uint64_t left = left_.load(std::memory_order_relaxed);
  do {
    if (bytes > left) {
      return nullptr;
    }
  } while (!left_.compare_exchange_weak(left, left - bytes, std::memory_order_relaxed));
  return {this, [room = shared_from_this(), bytes](void* /*room*/) {
            room->left_.fetch_add(bytes, std::memory_order_relaxed);
          }};
}

Result<PeerMemory> PeerMemory::open(base::UniqueFd&& file, const FileRange& range, MappingRoom* room) {
  const auto access = check_memory(file.get(), range);
  if (!access) {
    return access.error();
  }
  PeerMemory memory;
  memory.range_ = range;
  bool is_mapped = *access == Access::kMapped;
  if (is_mapped && room != nullptr) {
    memory.room_ = room->take(range.bytes);
    is_mapped = memory.room_ != nullptr;
  }
  if (!is_mapped) {
    memory.file_ = std::move(file);
    return memory;
  }
  auto mapped = base::Mapping::read_only(file.get(), range.bytes, range.offset);
  if (!mapped) {
    return mapped.error();
  }
  memory.mapping_ = *std::move(mapped);
  return memory;
}

std::errc PeerMemory::read(std::uint64_t offset, std::byte* to, std::uint64_t bytes) const {
  while (bytes > 0) {
    const ssize_t got = base::retry([&] {
      return ::pread(file_.get(), to, std::min(bytes, kMostAtOnce), static_cast<off_t>(range_.offset + offset));
    });
    if (got <= 0) {
      return std::errc::io_error;  // the file has shrunk
    }
    offset += static_cast<std::uint64_t>(got);
    to += got;
    bytes -= static_cast<std::uint64_t>(got);
  }
  return {};
}

}  // namespace shmem::exchange
