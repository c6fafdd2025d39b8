// SPDX-License-Identifier: Apache-2.0
#include "base/helper_thread.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <new>

#include "tests/support/sanitized.hpp"

namespace {

using base::HelperThread;

sigset_t own_mask() {
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return mask;
}

TEST(HelperThread, ReceivesNoSignalsButThoseOfRemovedMemory) {
  sigset_t mask;
  ::sigemptyset(&mask);
  auto thread = HelperThread::start([&mask] { mask = own_mask(); });
  ASSERT_TRUE(thread);
  thread->join();
  for (const int signal : {SIGUSR1, SIGTERM, SIGINT, SIGCHLD, SIGALRM, SIGPROF, SIGRTMIN, SIGRTMAX}) {
    // qemu-user keeps the last signal for itself.
    EXPECT_TRUE(::sigismember(&mask, signal) == 1 || (test_support::kEmulated && signal == SIGRTMAX)) << signal;
  }
  EXPECT_EQ(::sigismember(&mask, SIGBUS), 0);
}

struct NoMemory {
  NoMemory() = default;
  NoMemory(const NoMemory& /*other*/) { throw std::bad_alloc(); }
  NoMemory& operator=(const NoMemory&) = delete;
  ~NoMemory() = default;
  void operator()() const {}
};

TEST(HelperThread, WithoutMemoryIsAnErrorAndLeavesTheMaskAlone) {
  const auto thread = HelperThread::start(NoMemory{});
  ASSERT_FALSE(thread);
  EXPECT_EQ(thread.error().code, std::errc::not_enough_memory);
  const sigset_t mask = own_mask();
  EXPECT_EQ(::sigismember(&mask, SIGTERM), 0);
}

}  // namespace
