// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/store_guard.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string_view>

namespace shmem {

namespace {

// A signal handler has no argument to find these by.

/// Odd while ranges are guarded.
std::atomic<std::uint32_t> g_window{0};
/// Who guards them.
std::atomic<pid_t> g_owner{0};
/// What SIGSEGV did before.
struct sigaction g_before {};

/// What the handler remembers on a thread. Found without a call: initial-exec.
struct ThreadState {
  std::uint32_t repeated = 0;  // the window after which an access was last repeated
  bool passing_on = false;
};
__attribute__((tls_model("initial-exec"))) thread_local ThreadState g_thread;

pid_t thread_id() {
  return static_cast<pid_t>(::syscall(SYS_gettid));
}

/// What would have happened without us.
void pass_on(int number, siginfo_t* info, void* context) {
  const bool sent = info->si_code <= 0;  // by kill(), not by an access
  const bool has_function = g_before.sa_handler != SIG_DFL && g_before.sa_handler != SIG_IGN;
  // A handler that was installed over ours may come back to it.
  if (has_function && !g_thread.passing_on) {
    g_thread.passing_on = true;
    if ((g_before.sa_flags & SA_SIGINFO) != 0) {
      g_before.sa_sigaction(number, info, context);
    } else {
      g_before.sa_handler(number);
    }
    g_thread.passing_on = false;
    return;
  }
  if (g_before.sa_handler == SIG_IGN && sent) return;
  // The access is repeated on return, and ends the process where it stands.
  ::signal(SIGSEGV, SIG_DFL);
  if (sent) ::raise(SIGSEGV);
}

[[noreturn]] void give_up() {
  constexpr std::string_view kText =
      "shmem: the thread that makes the global variables symmetric stores into them itself (does the program replace "
      "a function of the C library?); SHMEM_SYMMETRIC_GLOBALS=off leaves them as they are\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText.data(), kText.size());
  ::_exit(1);
}

void wait_and_repeat(int number, siginfo_t* info, void* context) {
  const int error = errno;
  const std::uint32_t window = g_window.load(std::memory_order_acquire);
  const bool access = info->si_code > 0;  // not sent by kill()
  if (access && window % 2 != 0) {
    if (g_owner.load(std::memory_order_relaxed) == thread_id()) give_up();
    // Ends: the owner waits for nobody. Acquire, pairs with the release in ~StoreGuard: the new memory is in place.
    while (g_window.load(std::memory_order_acquire) == window) ::sched_yield();
  } else if (access && g_thread.repeated != window) {
    // The fault may be of a window that has ended meanwhile. If it is not, it comes again.
    g_thread.repeated = window;
  } else {
    pass_on(number, info, context);
  }
  errno = error;
}

/// Also true if that is not to be found out.
bool has_other_threads() {
  struct stat status {};
  // A folder has two links, and one for each folder in it.
  return ::stat("/proc/self/task", &status) != 0 || status.st_nlink != 3;
}

/// The program may have installed a handler of its own since the last time: then that stands behind ours.
void install_handler() {
  struct sigaction now {};
  ::sigaction(SIGSEGV, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == wait_and_repeat) return;
  g_before = now;
  struct sigaction ours {};
  ours.sa_sigaction = wait_and_repeat;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&ours.sa_mask);
  ::sigaction(SIGSEGV, &ours, nullptr);
}

int protect(std::span<const GlobalRange> ranges, int protection) {
  for (const GlobalRange& range : ranges) {
    if (::mprotect(range.begin, range.size, protection) != 0) return errno;
  }
  return 0;
}

}  // namespace

SignalBlock::SignalBlock() : before_() {
  sigset_t all;
  ::sigfillset(&all);
  // Stores of our own into the guarded ranges are to be seen by our handler.
  ::sigdelset(&all, SIGSEGV);
  ::pthread_sigmask(SIG_BLOCK, &all, &before_);
}

SignalBlock::~SignalBlock() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

StoreGuard::StoreGuard(std::span<const GlobalRange> ranges) {
  if (!has_other_threads()) return;
  ranges_ = ranges;
  install_handler();
  g_owner.store(thread_id(), std::memory_order_relaxed);
  // Before the first page is protected: a thread that faults there knows why. Pairs with the load in wait_and_repeat.
  g_window.fetch_add(1, std::memory_order_seq_cst);
  error_ = protect(ranges_, PROT_READ);
}

StoreGuard::~StoreGuard() {
  if (ranges_.empty()) return;
  protect(ranges_, PROT_READ | PROT_WRITE);
  g_window.fetch_add(1, std::memory_order_release);
}

}  // namespace shmem
