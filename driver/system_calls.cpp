// SPDX-License-Identifier: Apache-2.0
#include "driver/system_calls.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gba {

namespace {

class RealSystemCalls final : public SystemCalls {
 public:
  int open(const char* path, int flags) override { return ::open(path, flags); }
  int close(int fd) override { return ::close(fd); }
  int dup2(int from, int to) override { return ::dup2(from, to); }
  int ioctl(int fd, unsigned long request, void* argument) override { return ::ioctl(fd, request, argument); }
  ssize_t pread(int fd, void* data, std::size_t size, off_t offset) override { return ::pread(fd, data, size, offset); }
  ssize_t pwrite(int fd, const void* data, std::size_t size, off_t offset) override {
    return ::pwrite(fd, data, size, offset);
  }
  void* mmap(void* address, std::size_t size, int protection, int flags, int fd, off_t offset) override {
    return ::mmap(address, size, protection, flags, fd, offset);
  }
  int munmap(void* address, std::size_t size) override { return ::munmap(address, size); }
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
    if (::syscall(SYS_capget, &header, &data) != 0) return 0;
    return data[0].effective | static_cast<unsigned long long>(data[1].effective) << 32;
  }
};

}  // namespace

SystemCalls& real_system_calls() {
  // Never destroyed: a descriptor may be closed as late as from a static destructor.
  static auto& calls = *new RealSystemCalls;  // NOLINT(cppcoreguidelines-owning-memory)
  return calls;
}

}  // namespace gba
