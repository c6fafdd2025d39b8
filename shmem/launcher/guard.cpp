// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/guard.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace shmem::launcher {

namespace {

/// The guard's whole life. `lifeline` reads as ended when the last process that holds the other end is gone.
[[noreturn]] void stand_guard(int lifeline) {
  sigset_t all{};
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::setpgid(0, 0);
  ::prctl(PR_SET_NAME, "oshrun-guard");
  // Holds nothing open that others wait for the end of: our standard output, and the other end of the lifeline.
  ::dup2(lifeline, STDIN_FILENO);
  ::close_range(STDIN_FILENO + 1, ~0U, 0);
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR) {
  }
  ::kill(0, SIGKILL);
  ::_exit(0);
}

}  // namespace

Result<Guard> Guard::start() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "cannot make a pipe");
  const UniqueFd read(ends[0]);
  UniqueFd write(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno(errno, "cannot start a process: fork (see ulimit -u)");
  if (pid == 0) {
    write.reset();
    stand_guard(read.get());
  }
  ::setpgid(pid, pid);  // as the guard does itself: the group is there when we go on
  return Guard(pid, std::move(write));
}

void Guard::signal_group(int signal) const {
  if (alive_) ::kill(-pid_, signal);
}

Guard::~Guard() {
  if (!alive_) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace shmem::launcher
