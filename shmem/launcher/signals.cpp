// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/signals.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

namespace shmem::launcher {

namespace {

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

Result<Signals> Signals::block() {
  // Inherited as ignored, it would hide how a PE ended.
  ::signal(SIGCHLD, SIG_DFL);
  sigset_t waited{};
  ::sigemptyset(&waited);
  ::sigaddset(&waited, SIGCHLD);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGUSR1, SIGUSR2}) {
    if (!is_ignored(signal)) {
      ::sigaddset(&waited, signal);
    }
  }
  sigset_t blocked = waited;
  ::sigaddset(&blocked, SIGPIPE);
  sigset_t before{};
  if (::sigprocmask(SIG_BLOCK, &blocked, &before) != 0) {
    return fail_errno(errno, "cannot block signals");
  }
  base::UniqueFd fd(::signalfd(-1, &waited, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) {
    const int error = errno;
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    return fail_errno(error, "cannot wait for signals: signalfd");
  }
  return Signals(std::move(fd), before);
}

int Signals::next() const {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) {
    return 0;
  }
  return static_cast<int>(info.ssi_signo);
}

}  // namespace shmem::launcher
