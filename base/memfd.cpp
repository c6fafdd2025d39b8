// SPDX-License-Identifier: Apache-2.0
#include "base/memfd.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <limits>
#include <string>

#include "base/size_text.hpp"

#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB (21U << 26)  // in linux/memfd.h, which does not go together with sys/mman.h
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U  // Linux 6.3
#endif

namespace base {

namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

UniqueFd open_memfd(const char* name, MemfdPages pages) {
  const unsigned flags =
      MFD_CLOEXEC | MFD_ALLOW_SEALING | (pages == MemfdPages::kHuge ? MFD_HUGETLB | MFD_HUGE_2MB : 0U);
  // vm.memfd_noexec=2 refuses a memfd that could be executed; older kernels do not know the flag.
  UniqueFd fd(::memfd_create(name, flags | MFD_NOEXEC_SEAL));
  if (!fd && errno == EINVAL) {
    fd.reset(::memfd_create(name, flags));
  }
  return fd;
}

/// Growing a file beyond RLIMIT_FSIZE raises SIGXFSZ, which kills: ask first.
bool beyond_file_size_limit(std::size_t size) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur;
}

}  // namespace

Result<UniqueFd> create_memfd(const char* name, std::size_t size, MemfdPages pages, MemfdSeals seals) {
  const std::string doing = "cannot make " + size_text(size) + " of shared memory (" + name + ")";
  if (size > static_cast<std::size_t>(std::numeric_limits<off_t>::max())) {
    return fail_errno(EFBIG, doing);
  }
  if (beyond_file_size_limit(size)) {
    return fail(std::errc::file_too_large, doing + ": the limit on file sizes (ulimit -f) is smaller; raise it");
  }
  UniqueFd fd = open_memfd(name, pages);
  if (!fd) {
    return fail_errno(errno, doing + ": memfd_create");
  }
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return fail_errno(errno, doing + ": ftruncate");
  }
  const int last = seals == MemfdSeals::kFinal ? F_SEAL_SEAL : 0;
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals | last) != 0) {
    return fail_errno(errno, doing + ": sealing it");
  }
  return fd;
}

Result<void> keep_pages(int fd) {
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0) {
    return fail_errno(errno, "cannot seal the memory of file descriptor " + std::to_string(fd));
  }
  return {};
}

bool keeps_pages(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0;
}

Result<void> check_memfd(int fd, std::size_t size) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return fail_errno(errno, "cannot look at file descriptor " + std::to_string(fd));
  }
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return fail(std::errc::invalid_argument, "file descriptor " + std::to_string(fd) + " is not a sealed memfd");
  }
  const auto has = static_cast<std::size_t>(status.st_size);
  if (has < size) {
    return fail(std::errc::invalid_argument, "file descriptor " + std::to_string(fd) + " has " + size_text(has) +
                                                 " of shared memory instead of " + size_text(size));
  }
  return {};
}

}  // namespace base
