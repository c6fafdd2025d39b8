// SPDX-License-Identifier: Apache-2.0
#include "base/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <system_error>
#include <thread>

namespace base {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPoll{2};

Clock::time_point after(Seconds limit) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
}

/// What the program writes is appended; its offset is shared by all that inherit the descriptor.
UniqueFd make_output(Output output) {
  const bool collected = output == Output::kCollected || output == Output::kStandardCollected;
  if (!collected && output != Output::kDiscarded) {
    return UniqueFd();
  }
  UniqueFd fd(collected ? ::memfd_create("output", MFD_CLOEXEC) : ::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!fd || (collected && ::fcntl(fd.get(), F_SETFL, O_APPEND) != 0)) {
    throw std::system_error(errno, std::generic_category(), "output of a process");
  }
  return fd;
}

void die_with_parent(pid_t parent, int signal) {
  ::prctl(PR_SET_PDEATHSIG, signal);
  if (::getppid() != parent) {
    ::_exit(127);  // the parent ended before the kernel knew
  }
}

[[noreturn]] void exec_child(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                             int out, bool errors_too) {
  ::setpgid(0, 0);
  if (out >= 0) {
    ::dup2(out, STDOUT_FILENO);
  }
  if (errors_too) {
    ::dup2(out, STDERR_FILENO);
  }
  for (const auto& entry : environment) {
    const auto equals = entry.find('=');
    ::setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const auto& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  ::dprintf(STDERR_FILENO, "cannot run %s: errno %d\n", argv[0], errno);
  ::_exit(127);
}

}  // namespace

Process::Process(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                 const ProcessOptions& options)
    : grace_(options.grace), output_(make_output(options.output)) {
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) {
    throw std::system_error(errno, std::generic_category(), "fork for " + arguments.at(0));
  }
  if (pid_ == 0) {
    die_with_parent(parent, grace_ > Seconds{0} ? SIGTERM : SIGKILL);
    exec_child(arguments, environment, output_.get(), options.output == Output::kCollected);
  }
  ::setpgid(pid_, pid_);
  end_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
}

Process::~Process() {
  if (grace_ > Seconds{0} && running()) {
    signal(SIGTERM);
    resume();
    wait(grace_);
  }
  ::kill(-pid_, SIGKILL);
  if (!exit_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

std::string Process::output() const {
  std::string text;
  std::array<char, 4096> part{};
  while (true) {
    const ssize_t got = ::pread(output_.get(), part.data(), part.size(), static_cast<off_t>(text.size()));
    if (got <= 0) {
      return text;
    }
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

std::optional<Exit> Process::poll() {
  int status = 0;
  if (!exit_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    exit_ = WIFSIGNALED(status) ? Exit{-1, WTERMSIG(status)} : Exit{WEXITSTATUS(status), 0};
  }
  return exit_;
}

std::optional<Exit> Process::wait(Seconds limit) {
  const auto end = after(limit);
  while (!poll() && Clock::now() < end) {
    if (!end_) {
      std::this_thread::sleep_for(kPoll);
      continue;
    }
    // No wakeup until the end: benchmarks wait here while the program measures.
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd waiting{.fd = end_.get(), .events = POLLIN, .revents = 0};
    ::poll(&waiting, 1, static_cast<int>(std::clamp<decltype(left)>(left, 0, 1'000'000)));
  }
  return exit_;
}

Exit Process::wait() {
  siginfo_t ended{};
  while (!exit_ && ::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  return poll().value_or(Exit{});
}

bool Process::wait_for_output(const std::string& text, Seconds limit) {
  const auto end = after(limit);
  while (true) {
    const bool ended = poll().has_value();
    if (output().find(text) != std::string::npos) {
      return true;
    }
    if (ended || Clock::now() >= end) {
      return false;
    }
    std::this_thread::sleep_for(kPoll);
  }
}

void Process::signal(int number) const {
  ::kill(pid_, number);
}

void Process::stop() const {
  if (!exit_) {
    ::kill(pid_, SIGSTOP);
    siginfo_t seen{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &seen, WSTOPPED | WEXITED | WNOWAIT);
  }
}

void Process::resume() const {
  if (!exit_) {
    ::kill(pid_, SIGCONT);
  }
}

Outcome run(const std::vector<std::string>& arguments, const std::vector<std::string>& environment, Seconds limit,
            const ProcessOptions& options) {
  Process process(arguments, environment, options);
  const auto exit = process.wait(limit);
  return {exit.value_or(Exit{-1, SIGKILL}), process.output()};
}

}  // namespace base
