// SPDX-License-Identifier: Apache-2.0
// Interrupts to a client that misuses its eventfd: fills it, or changes its flags.
#include "fake_device/interrupts.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <limits>
#include <thread>
#include <vector>

#include "tests/support/soak.hpp"
#include "tests/unit/fake_device/given.hpp"
#include "uapi/vfio_user.h"

namespace {

using fake_device::EventSignaller;
using fake_device::InterruptQueue;
using fake_device::IrqTable;
using fake_device_test::take_count;

constexpr std::uint64_t kFull = std::numeric_limits<std::uint64_t>::max() - 1;

constexpr int kNoFilter = 77;  // exit code of a child that cannot filter system calls

TEST(EventSignaller, AddsOneEachTime) {
  EventSignaller signaller;
  const base::UniqueFd eventfd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  for (int count = 0; count < 1000; ++count) {  // many more than the ring of completions holds
    signaller.signal(eventfd.get());
  }
  EXPECT_EQ(take_count(eventfd), 1000U);
  EXPECT_EQ(take_count(eventfd), 0U);
}

TEST(EventSignaller, DoesNotWaitForAFullEventfd) {
  EventSignaller signaller;
  const base::UniqueFd eventfd(::eventfd(0, EFD_CLOEXEC | (signaller.never_waits() ? 0 : EFD_NONBLOCK)));
  ASSERT_EQ(::write(eventfd.get(), &kFull, sizeof kFull), static_cast<ssize_t>(sizeof kFull));
  for (int count = 0; count < 3; ++count) {
    signaller.signal(eventfd.get());
  }
  EXPECT_GE(take_count(eventfd), kFull);
  signaller.signal(eventfd.get());
  EXPECT_EQ(take_count(eventfd), 1U);
}

TEST(EventSignaller, DoesNotChangeTheFlagsOfTheClientsEventfd) {
  EventSignaller signaller;
  if (!signaller.never_waits()) {
    GTEST_SKIP() << "asynchronous I/O is not available";
  }
  InterruptQueue queue(signaller);
  IrqTable irqs(1, queue);
  const base::UniqueFd mine(::eventfd(0, EFD_CLOEXEC));
  std::vector<fake_device::Given> fds;
  fds.push_back(fake_device_test::again(mine));
  ASSERT_EQ(irqs.set(GBA_IRQ_MSIX, VFIO_USER_IRQ_DATA_EVENTFD | VFIO_USER_IRQ_ACTION_TRIGGER, 0, 1, {}, std::move(fds)),
            0);
  EXPECT_EQ(::fcntl(mine.get(), F_GETFL) & O_NONBLOCK, 0);
  irqs.raise(GBA_IRQ_MSIX, 0);
  EXPECT_EQ(take_count(mine), 1U);
}

/// From now on io_setup fails with EPERM, as it may in containers.
bool forbid_asynchronous_io() {
  std::array<sock_filter, 4> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{.len = static_cast<unsigned short>(program.size()), .filter = program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

int signal_without_asynchronous_io() {
  if (!forbid_asynchronous_io()) {
    return kNoFilter;
  }
  EventSignaller signaller;
  InterruptQueue queue(signaller);
  IrqTable irqs(1, queue);
  const base::UniqueFd mine(::eventfd(0, EFD_CLOEXEC));
  std::vector<fake_device::Given> fds;
  fds.push_back(fake_device_test::again(mine));
  const bool armed =
      irqs.set(GBA_IRQ_MSIX, VFIO_USER_IRQ_DATA_EVENTFD | VFIO_USER_IRQ_ACTION_TRIGGER, 0, 1, {}, std::move(fds)) == 0;
  irqs.raise(GBA_IRQ_MSIX, 0);
  const bool counted = take_count(mine) == 1;
  const bool filled = ::write(mine.get(), &kFull, sizeof kFull) == static_cast<ssize_t>(sizeof kFull);
  irqs.raise(GBA_IRQ_MSIX, 0);  // must not block
  // Without closing what it was given: ThreadSanitizer starts no thread in a child of several.
  ::_exit(!signaller.never_waits() && armed && counted && filled ? 0 : 1);
}

/// Runs `code`, which returns 0 if all is well and must end, in a child.
void expect_in_child(int (*code)()) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(20);
    ::_exit(code());
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoFilter) {
    GTEST_SKIP() << "seccomp is not available";
  }
  EXPECT_EQ(status, 0);
}

TEST(EventSignaller, WorksWithoutAsynchronousIo) {
  expect_in_child(signal_without_asynchronous_io);
}

/// From now on io_submit fails with EAGAIN, as without memory, and a write, which could wait, kills the process.
bool let_submissions_fail() {
  std::array<sock_filter, 7> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_submit, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_writev, 2, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  }};
  const sock_fprog filter{.len = static_cast<unsigned short>(program.size()), .filter = program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// 0 if signals are lost, whatever the eventfd holds.
int signal_without_memory() {
  EventSignaller signaller;
  const base::UniqueFd full(::eventfd(0, EFD_CLOEXEC));  // blocking, so that a write would wait
  const base::UniqueFd empty(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!signaller.never_waits() || ::write(full.get(), &kFull, sizeof kFull) != static_cast<ssize_t>(sizeof kFull)) {
    return 2;
  }
  if (!let_submissions_fail()) {
    return kNoFilter;
  }
  signaller.signal(full.get());
  signaller.signal(empty.get());
  return take_count(full) == kFull && take_count(empty) == 0 ? 0 : 1;
}

// A poll for room and a write would wait if the client filled the eventfd in between.
TEST(EventSignaller, LosesASignalRatherThanWaitIfTheKernelHasNoMemory) {
  if (!EventSignaller().never_waits()) {
    GTEST_SKIP() << "asynchronous I/O is not available";
  }
  expect_in_child(signal_without_memory);
}

/// Signals an eventfd in a loop.
class Raiser {
 public:
  explicit Raiser(int eventfd) : eventfd_(eventfd), thread_([this] { run(); }) {}
  Raiser(const Raiser&) = delete;
  Raiser& operator=(const Raiser&) = delete;
  ~Raiser() {
    stop_ = true;
    thread_.join();
  }

  /// False if the loop is stuck.
  bool goes_on() const {
    const auto seen = raised_.load();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (raised_.load() < seen + 2) {
      if (std::chrono::steady_clock::now() > end) {
        return false;
      }
      std::this_thread::yield();
    }
    return true;
  }

 private:
  void run() {
    EventSignaller signaller;
    while (!stop_) {
      signaller.signal(eventfd_);
      ++raised_;
    }
  }

  const int eventfd_;
  std::atomic<bool> stop_ = false;
  std::atomic<std::uint64_t> raised_ = 0;
  std::thread thread_;  // last: it uses the other members
};

// A signaller that polls for room and then writes gets stuck here within a few dozen rounds.
TEST(EventSignaller, NeverWaitsForAClientThatFillsItsEventfdInBetween) {
  if (!EventSignaller().never_waits()) {
    GTEST_SKIP() << "asynchronous I/O is not available: a client can make the device wait";
  }
  const base::UniqueFd eventfd(::eventfd(0, EFD_CLOEXEC));
  const Raiser raiser(eventfd.get());
  bool going = true;
  for (int round = 0; going && round < test_support::repeats(300, 200000); ++round) {
    ::fcntl(eventfd.get(), F_SETFL, O_NONBLOCK);
    take_count(eventfd);
    [[maybe_unused]] const auto filled = ::write(eventfd.get(), &kFull, sizeof kFull);
    ::fcntl(eventfd.get(), F_SETFL, 0);
    going = raiser.goes_on();
    EXPECT_TRUE(going) << "stuck waiting for room in the eventfd in round " << round;
  }
  ::fcntl(eventfd.get(), F_SETFL, O_NONBLOCK);
  take_count(eventfd);  // releases a signaller that is stuck
}

}  // namespace
