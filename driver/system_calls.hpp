// SPDX-License-Identifier: Apache-2.0
// The system calls that drive the kernel's VFIO: a seam, so that tests can stand in for the kernel.
#pragma once

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/mapping.hpp"
#include "base/private_fd.hpp"
#include "driver/result.hpp"

namespace gba {

/// Each call is the one of its name and fails as that does: -1 (or MAP_FAILED) and errno. Thread-safe.
class SystemCalls {
 public:
  SystemCalls() = default;
  SystemCalls(const SystemCalls&) = delete;
  SystemCalls& operator=(const SystemCalls&) = delete;
  virtual ~SystemCalls() = default;

  virtual int open(const char* path, int flags) = 0;
  virtual int close(int fd) = 0;
  virtual int dup3(int from, int to, int flags) = 0;
  virtual int ioctl(int fd, unsigned long request, void* argument) = 0;
  virtual ssize_t pread(int fd, void* data, std::size_t size, off_t offset) = 0;
  virtual ssize_t pwrite(int fd, const void* data, std::size_t size, off_t offset) = 0;
  virtual void* mmap(void* address, std::size_t size, int protection, int flags, int fd, off_t offset) = 0;
  virtual int eventfd(unsigned value, int flags) = 0;
  virtual int epoll_create1(int flags) = 0;
  virtual int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) = 0;
  virtual int getrlimit(int resource, rlimit* limit) = 0;
  /// The calling thread's effective capabilities: one bit each. Never fails.
  virtual unsigned long long effective_capabilities() = 0;
};

/// The kernel itself.
SystemCalls& real_system_calls();

/// `size` bytes of `fd` from `offset`, shared, readable and writable, not in core dumps. `what` names them in an
/// error. `fd` may be closed afterwards.
Result<base::Mapping> map_shared(int fd, std::uint64_t offset, std::size_t size, const std::string& what,
                                 SystemCalls& system = real_system_calls());

/// Owns a file descriptor that came from `system`, or none. `system` outlives it. Not thread-safe.
class SystemFd {
 public:
  SystemFd() = default;
  SystemFd(SystemCalls& system, int fd) noexcept : system_(&system), fd_(fd) {}
  /// One that keeps a device open: a forked child gets a dead descriptor of its number.
  static SystemFd of_device(SystemCalls& system, int fd) noexcept {
    base::keep_private(fd);
    return {system, fd};
  }
  SystemFd(const SystemFd&) = delete;
  SystemFd& operator=(const SystemFd&) = delete;
  SystemFd(SystemFd&& other) noexcept : system_(other.system_), fd_(std::exchange(other.fd_, -1)) {}
  SystemFd& operator=(SystemFd&& other) noexcept {
    std::swap(system_, other.system_);
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~SystemFd() {
    if (fd_ >= 0) {
      const base::Closing closing(fd_);
      system_->close(fd_);
    }
  }

  [[nodiscard]] int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  SystemCalls* system_ = nullptr;
  int fd_ = -1;
};

}  // namespace gba
