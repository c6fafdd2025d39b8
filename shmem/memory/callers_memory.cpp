// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/callers_memory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <vector>

#include "base/number.hpp"
#include "shmem/memory/own_mappings.hpp"

// Linux 5.1; in linux/fcntl.h, which does not go together with fcntl.h.
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace shmem {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;

bool is_file_of(int fd, const OwnMapping& mapping) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && status.st_dev == mapping.device && status.st_ino == mapping.inode;
}

/// An Error unless other processes can map the file for reading and writing. Asks no file system.
Result<void> check_mappable(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0) {
    return errno == EBADF
               ? fail_errno(errno, fmt::format("cannot use file descriptor {}", fd))
               : fail(std::errc::operation_not_supported,
                      fmt::format("file descriptor {} is neither a memfd nor a file of tmpfs or hugetlbfs; give one of "
                                  "these, or -1 for copies by system calls",
                                  fd));
  }
  if ((::fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDWR) {
    return fail(std::errc::permission_denied,
                fmt::format("file descriptor {} is not open for reading and writing; open it with O_RDWR", fd));
  }
  if ((seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0) {
    return fail(std::errc::permission_denied,
                fmt::format("the file of descriptor {} is sealed against writing; leave out F_SEAL_WRITE and "
                            "F_SEAL_FUTURE_WRITE",
                            fd));
  }
  return {};
}

/// The size of the pages in which a file is mapped.
std::uint64_t page_of(int fd) {
  struct statfs system {};
  if (::fstatfs(fd, &system) == 0 && system.f_type == HUGETLBFS_MAGIC) {
    return static_cast<std::uint64_t>(system.f_bsize);
  }
  return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

Result<void> check_size(int fd, std::uint64_t offset, std::uint64_t bytes) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return fail_errno(errno, fmt::format("cannot look at file descriptor {}", fd));
  }
  const auto has = static_cast<std::uint64_t>(status.st_size);
  if (bytes > has || offset > has - bytes) {
    return fail(std::errc::invalid_argument,
                fmt::format("{} bytes from byte {} on of a file of {}: make the file larger "
                            "before it is registered",
                            bytes, offset, has));
  }
  return {};
}

Result<void> check_access(const std::vector<OwnMapping>& mappings) {
  for (const OwnMapping& mapping : mappings) {
    if (!mapping.readable || !mapping.writable) {
      return fail(
          std::errc::permission_denied,
          fmt::format("the memory at {:#x} is not mapped for reading and writing, and other PEs may do both; map "
                      "it with PROT_READ and PROT_WRITE",
                      mapping.begin));
    }
  }
  return {};
}

/// The kernel copies no memory of devices for other processes. Not to be found out if system calls are filtered.
Result<void> check_ordinary(std::span<std::byte> memory, const std::vector<OwnMapping>& mappings) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  for (const OwnMapping& mapping : mappings) {
    std::byte copy{};
    const iovec here{&copy, 1};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): /proc gives addresses as numbers
    const iovec there{reinterpret_cast<void*>(std::max(begin, mapping.begin)), 1};
    if (::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) < 0 && errno == EFAULT) {
      return fail(std::errc::operation_not_supported,
                  fmt::format("the memory at {}{} is not ordinary memory (of a device, or beyond the end of its file); "
                              "other processes cannot use it",
                              there.iov_base, mapping.path.empty() ? "" : ", " + mapping.path + ","));
    }
  }
  return {};
}

/// With the descriptor that the caller has given.
Result<FilePart> given_part(const std::vector<OwnMapping>& mappings, std::span<std::byte> memory, int fd,
                            std::uint64_t offset) {
  if (auto ok = check_mappable(fd); !ok) {
    return ok.error();
  }
  const OwnMapping& first = mappings.front();
  const std::uint64_t mapped = first.offset + (reinterpret_cast<std::uintptr_t>(memory.data()) - first.begin);
  if (!are_one_file(mappings) || !is_file_of(fd, first)) {
    return fail(
        std::errc::invalid_argument,
        fmt::format("the memory at {} is not a shared mapping of file descriptor {}; map that with MAP_SHARED, or "
                    "give -1",
                    static_cast<void*>(memory.data()), fd));
  }
  if (mapped != offset) {
    return fail(std::errc::invalid_argument,
                fmt::format("the memory at {} is byte {} of file descriptor {}, not byte {}",
                            static_cast<void*>(memory.data()), mapped, fd, offset));
  }
  base::UniqueFd own(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own) {
    return fail_errno(errno, fmt::format("cannot duplicate file descriptor {}", fd));
  }
  if (auto ok = check_size(own.get(), offset, memory.size()); !ok) {
    return ok.error();
  }
  return FilePart{std::move(own), offset};
}

bool serves(const base::UniqueFd& fd, const OwnMapping& mapping) {
  return fd && is_file_of(fd.get(), mapping) && check_mappable(fd.get()).has_value();
}

/// Another thread may close or replace a descriptor meanwhile: what counts is what the copy is.
base::UniqueFd among_open_files(const OwnMapping& mapping) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"),
                                                   [](DIR* open) { return ::closedir(open); });
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {  // NOLINT(concurrency-mt-unsafe)
    const auto fd = base::number<int>(entry->d_name);
    if (!fd || !is_file_of(*fd, mapping)) {
      continue;
    }
    base::UniqueFd own(::fcntl(*fd, F_DUPFD_CLOEXEC, 0));
    if (serves(own, mapping)) {
      return own;
    }
  }
  return base::UniqueFd();
}

base::UniqueFd by_name(const std::string& path, const OwnMapping& mapping) {
  struct stat status {};
  // A path could be that of a device or a pipe by now.
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return base::UniqueFd();
  }
  base::UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  return serves(file, mapping) ? std::move(file) : base::UniqueFd();
}

base::UniqueFd find_file(const OwnMapping& mapping) {
  base::UniqueFd file = among_open_files(mapping);
  if (!file && mapping.path.starts_with('/')) {
    file = by_name(mapping.path, mapping);
  }
  if (!file) {  // needs a privilege
    file = by_name(fmt::format("/proc/self/map_files/{:x}-{:x}", mapping.begin, mapping.end), mapping);
  }
  return file;
}

}  // namespace

Result<FilePart> file_of(std::span<std::byte> memory, int fd, std::uint64_t offset) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  if (memory.data() == nullptr || memory.empty() || memory.size() > kMostBytes || begin > UINTPTR_MAX - memory.size()) {
    return fail(std::errc::invalid_argument,
                fmt::format("{} bytes at {} are no memory", memory.size(), static_cast<void*>(memory.data())));
  }
  if (fd < -1) {
    return fail(std::errc::invalid_argument,
                fmt::format("{} is no file descriptor; give that of the memory's file, or -1", fd));
  }
  const auto mappings = mappings_of(memory);
  if (!mappings) {
    return mappings.error();
  }
  if (auto ok = check_access(*mappings); !ok) {
    return ok.error();
  }
  if (auto ok = check_ordinary(memory, *mappings); !ok) {
    return ok.error();
  }
  if (fd >= 0) {
    return given_part(*mappings, memory, fd, offset);
  }
  if (!are_one_file(*mappings)) {
    return FilePart{base::UniqueFd()};
  }
  const OwnMapping& first = mappings->front();
  FilePart part{find_file(first), first.offset + (begin - first.begin)};
  if (part.file && !check_size(part.file.get(), part.offset, memory.size())) {
    part.file.reset();
  }
  return part;
}

Result<Window> map_window(int file, std::uint64_t offset, std::size_t bytes) {
  if (auto ok = check_mappable(file); !ok) {
    return ok.error();
  }
  if (auto ok = check_size(file, offset, bytes); !ok) {
    return ok.error();
  }
  const std::uint64_t page = page_of(file);
  const std::uint64_t before = offset % page;
  const std::size_t whole = (before + bytes + page - 1) / page * page;
  auto mapping = base::Mapping::share_part(file, whole, offset - before);
  if (!mapping) {
    return mapping.error();
  }
  std::byte* const data = mapping->data() + before;
  return Window{*std::move(mapping), data};
}

}  // namespace shmem
