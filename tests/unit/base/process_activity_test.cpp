// SPDX-License-Identifier: Apache-2.0
#include "base/process_activity.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <thread>

namespace {

using base::has_ended;
using base::start_of;

/// From now on this process gets no descriptors of processes. False: it cannot be arranged.
bool forbid_pidfds() {
  std::array<sock_filter, 4> filter{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{filter.size(), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool soon(const std::function<bool()>& condition) {
  for (int i = 0; i < 10000; ++i) {
    if (condition()) {  // once: what has been seen changes the next answer
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return false;
}

pid_t start(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child < 0) {
    std::abort();  // kill(-1) would reach every process
  }
  if (child == 0) {
    body();
    ::_exit(0);
  }
  return child;
}

const auto kPause = [] { ::pause(); };

/// 0: as it should be.
int look_at_processes() {
  const pid_t zombie = start([] {});
  if (!soon([zombie] { return has_ended(zombie); })) {
    return 1;
  }
  const pid_t alive = start(kPause);
  const bool taken_for_dead = has_ended(alive) || has_ended(::getpid());
  ::kill(alive, SIGKILL);
  // The first thread has ended, the process has not.
  const pid_t headless = start([] {
    std::thread(kPause).detach();
    ::syscall(SYS_exit, 0);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds{100});
  const bool headless_taken_for_dead = has_ended(headless);
  ::kill(headless, SIGKILL);
  const bool noticed = soon([headless] { return has_ended(headless); });
  ::waitpid(zombie, nullptr, 0);
  const bool gone = has_ended(zombie);
  return taken_for_dead ? 2 : headless_taken_for_dead ? 3 : !noticed ? 4 : !gone ? 5 : 0;
}

TEST(HasEnded, TellsTheDeadFromTheLiving) {
  EXPECT_EQ(look_at_processes(), 0);
}

TEST(HasEnded, NeedsNoDescriptors) {
  const pid_t child = start([] { ::_exit(forbid_pidfds() ? look_at_processes() : 77); });
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << "no seccomp filter here";
  }
  EXPECT_EQ(status, 0);
}

TEST(StartOf, IsConstantAndOrdersProcesses) {
  const std::uint64_t mine = start_of(::getpid());
  EXPECT_GT(mine, 0U);
  EXPECT_EQ(start_of(::getpid()), mine);
  const pid_t child = start(kPause);
  EXPECT_GE(start_of(child), mine);
  EXPECT_NE(start_of(1), start_of(child));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(start_of(child), 0U);
}

TEST(ProcessActivity, TellsAProcessThatSleepsFromOneThatWaitsForAProcessor) {
  const pid_t asleep = start(kPause);
  base::ProcessActivity sleeps(asleep);
  EXPECT_TRUE(soon([&sleeps] { return !sleeps.works(); }));
  EXPECT_FALSE(sleeps.starved());
  ::kill(asleep, SIGKILL);
  ::waitpid(asleep, nullptr, 0);

  // It shares a processor with one that may always use it.
  const pid_t parent = start([] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
    ::sched_setaffinity(0, sizeof one, &one);
    const pid_t other = start([parent = ::getpid()] {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (volatile bool runs = ::getppid() == parent; runs;) {  // else it was killed before that
      }
    });
    static_cast<void>(other);
    const sched_param none{};
    ::sched_setscheduler(0, SCHED_IDLE, &none);
    for (volatile bool runs = true; runs;) {
    }
  });
  base::ProcessActivity waits(parent);
  EXPECT_TRUE(soon([&waits] { return waits.works() && waits.starved(); }));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
}

}  // namespace
