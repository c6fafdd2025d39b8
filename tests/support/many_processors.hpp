// SPDX-License-Identifier: Apache-2.0
// A machine with many processors, for one file of a test program: it stands in for a function of the C library.
#pragma once

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace test_support {

/// A kernel of a machine with so many processors, all of which this process may use; 0: the real one.
inline std::size_t many_processors = 0;

}  // namespace test_support

extern "C" int sched_getaffinity(pid_t process, std::size_t size, cpu_set_t* set) noexcept {
  const std::size_t many = test_support::many_processors;
  if (many == 0) {
    const long bytes = ::syscall(SYS_sched_getaffinity, process, size, set);
    if (bytes < 0) {
      return -1;
    }
    std::memset(reinterpret_cast<char*>(set) + bytes, 0, size - static_cast<std::size_t>(bytes));
    return 0;
  }
  if (size < many / 8) {
    errno = EINVAL;
    return -1;
  }
  std::memset(set, 0, size);
  std::memset(set, 0xff, many / 8);
  return 0;
}
