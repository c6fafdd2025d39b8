// SPDX-License-Identifier: Apache-2.0
#include "driver/system_calls.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace gba {

namespace {

class RealSystemCalls final : public SystemCalls {
 public:
  int open(const char* path, int flags) override { return ::open(path, flags); }
  int close(int fd) override { return ::close(fd); }
  int dup3(int from, int to, int flags) override { return ::dup3(from, to, flags); }
  int ioctl(int fd, unsigned long request, void* argument) override { return ::ioctl(fd, request, argument); }
  ssize_t pread(int fd, void* data, std::size_t size, off_t offset) override { return ::pread(fd, data, size, offset); }
  ssize_t pwrite(int fd, const void* data, std::size_t size, off_t offset) override {
    return ::pwrite(fd, data, size, offset);
  }
  void* mmap(void* address, std::size_t size, int protection, int flags, int fd, off_t offset) override {
    return ::mmap(address, size, protection, flags, fd, offset);
  }
  int eventfd(unsigned value, int flags) override { return ::eventfd(value, flags); }
  int epoll_create1(int flags) override { return ::epoll_create1(flags); }
  int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) override {
    return ::epoll_ctl(epoll, operation, fd, event);
  }
  int getrlimit(int resource, rlimit* limit) override {
    return ::getrlimit(static_cast<__rlimit_resource>(resource), limit);
  }
  unsigned long long effective_capabilities() override {
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
    if (::syscall(SYS_capget, &header, &data) != 0) {
      return 0;
    }
    return data[0].effective | static_cast<unsigned long long>(data[1].effective) << 32;
  }
};

}  // namespace

SystemCalls& real_system_calls() {
  // Never destroyed: a descriptor may be closed as late as from a static destructor.
  static auto& calls = *new RealSystemCalls;  // NOLINT(cppcoreguidelines-owning-memory)
  return calls;
}

namespace {

/// Touching a page behind the end of a file raises SIGBUS, so a file that is too short is found here. Devices have no
/// size.
bool too_short(int fd, std::uint64_t end) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && static_cast<std::uint64_t>(status.st_size) < end;
}

}  // namespace

Result<base::Mapping> map_shared(int fd, std::uint64_t offset, std::size_t size, const std::string& what,
                                 SystemCalls& system) {
  if (too_short(fd, offset + size)) {
    return fail(std::errc::io_error, fmt::format("gba: cannot map {}: the file behind it is too short", what));
  }
  base::Mapping mapping(system.mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset)),
                        size);
  if (!mapping) {
    return fail_errno(errno, fmt::format("gba: cannot map {}", what));
  }
  // Reading device memory for a core dump could have effects there. If the kernel refuses, the mapping still works.
  ::madvise(mapping.data(), mapping.size(), MADV_DONTDUMP);
  return mapping;
}

}  // namespace gba
