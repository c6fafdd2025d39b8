// SPDX-License-Identifier: Apache-2.0
// Shows that code makes no system call: it runs in a child whose kernel ends it at the first one.
#pragma once

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <functional>

namespace test_support {

/// From now on only exit_group is allowed. False if the kernel does not support such filters.
inline bool forbid_system_calls() {
  std::array<sock_filter, 4> program{{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
                                      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                                      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)}};
  const sock_fprog filter{program.size(), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// Runs `code` in a child. True if it returned true and made no system call. Its changes to shared memory remain.
inline bool makes_no_system_calls(const std::function<bool()>& code) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(forbid_system_calls() && code() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0;
}

inline void expect_no_system_calls(const std::function<bool()>& code) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers make system calls of their own";
#endif
  if (!makes_no_system_calls([] { return true; })) {
    GTEST_SKIP() << "seccomp filters are not available";
  }
  EXPECT_TRUE(makes_no_system_calls(code));
}

}  // namespace test_support
