// SPDX-License-Identifier: Apache-2.0
#include "driver/mapping.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>

namespace gba {

namespace {

/// Touching a page behind the end of a file is SIGBUS, so a file that is too short is found here. Devices have no size.
bool too_short(int fd, std::uint64_t end) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && static_cast<std::uint64_t>(status.st_size) < end;
}

}  // namespace

Mapping::~Mapping() {
  if (!bytes_.empty()) system_->munmap(bytes_.data(), bytes_.size());
}

Result<Mapping> Mapping::share(int fd, std::uint64_t offset, std::size_t size, const std::string& what,
                               SystemCalls& system) {
  if (too_short(fd, offset + size)) {
    return fail(std::errc::io_error, "gba: cannot map " + what + ": the file behind it is too short");
  }
  void* data = system.mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (data == MAP_FAILED) return fail_errno(errno, "gba: cannot map " + what);
  // Reading device memory for a core dump could have effects there. It is no reason to fail if that is not to be had.
  ::madvise(data, size, MADV_DONTDUMP);
  return Mapping(system, {static_cast<std::byte*>(data), size});
}

Result<UniqueFd> make_sealed_memory(const char* name, std::size_t size) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(size)) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return fail_errno(errno, "gba: cannot make " + std::to_string(size) + " bytes of shared memory");
  }
  return fd;
}

Result<HugePage> make_sealed_huge_page(const char* name) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
  struct statfs info {};
  if (!fd || ::fstatfs(fd.get(), &info) != 0 || ::ftruncate(fd.get(), info.f_bsize) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return fail_errno(errno, "gba: cannot make a huge page of shared memory");
  }
  return HugePage{.fd = std::move(fd), .size = static_cast<std::size_t>(info.f_bsize)};
}

}  // namespace gba
