// SPDX-License-Identifier: Apache-2.0
#include "bench/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPoll{5};
constexpr std::chrono::seconds kTimeToEnd{5};

[[noreturn]] void exec_child(std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                             int output) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (output == kDiscarded) {
    output = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  }
  if (output >= 0) {
    ::dup2(output, STDOUT_FILENO);
  }
  for (const auto& entry : environment) {
    const auto equals = entry.find('=');
    ::setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (auto& argument : arguments) {
    argv.push_back(argument.data());
  }
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  ::dprintf(STDERR_FILENO, "cannot run %s: errno %d\n", argv[0], errno);
  ::_exit(127);
}

/// Both ends of a pipe, closed with the object.
struct Pipe {
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw std::system_error(errno, std::generic_category(), "pipe2");
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    ::close(ends[0]);
    close_writer();
  }
  void close_writer() {
    if (ends[1] >= 0) {
      ::close(ends[1]);
      ends[1] = -1;
    }
  }
  std::array<int, 2> ends{-1, -1};
};

/// The end of what a program has said: enough to see what is wrong with it.
std::string last_words(const std::string& output) {
  constexpr std::size_t kMost = 500;
  return output.size() <= kMost ? output : "..." + output.substr(output.size() - kMost);
}

/// All that comes until the writers are gone or `end` is there. True if they are gone.
bool read_all(int fd, std::string& text, Clock::time_point end) {
  std::array<char, 4096> part{};
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    pollfd waiting{fd, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) == 0) {
      return false;
    }
    const ssize_t got = ::read(fd, part.data(), part.size());
    if (got == 0) {
      return true;
    }
    if (got > 0) {
      text.append(part.data(), static_cast<std::size_t>(got));
    }
  }
}

}  // namespace

Child::Child(std::vector<std::string> arguments, const std::vector<std::string>& environment, int output)
    : name_(arguments.at(0)), pid_(::fork()) {
  if (pid_ < 0) {
    throw std::system_error(errno, std::generic_category(), "fork for " + name_);
  }
  if (pid_ == 0) {
    exec_child(arguments, environment, output);
  }
}

Child::~Child() {
  go_on();
  if (!ended_) {
    ::kill(pid_, SIGTERM);
  }
  const auto end = Clock::now() + kTimeToEnd;
  while (running() && Clock::now() < end) {
    std::this_thread::sleep_for(kPoll);
  }
  if (!ended_) {
    ::kill(pid_, SIGKILL);
    wait();
  }
}

void Child::stop() const {
  if (ended_) {
    return;
  }
  ::kill(pid_, SIGSTOP);
  siginfo_t seen{};
  ::waitid(P_PID, static_cast<id_t>(pid_), &seen, WSTOPPED | WEXITED | WNOWAIT);
}

void Child::go_on() const {
  if (!ended_) {
    ::kill(pid_, SIGCONT);
  }
}

bool Child::running() {
  if (!ended_ && ::waitpid(pid_, &status_, WNOHANG) == pid_) {
    ended_ = true;
  }
  return !ended_;
}

int Child::wait() {
  if (!ended_) {
    ::waitpid(pid_, &status_, 0);
    ended_ = true;
  }
  return status_;
}

std::string run(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                std::chrono::seconds limit) {
  Pipe pipe;
  Child child(arguments, environment, pipe.ends[1]);
  pipe.close_writer();
  std::string output;
  if (!read_all(pipe.ends[0], output, Clock::now() + limit)) {
    throw std::runtime_error(arguments[0] + " has not ended within " + std::to_string(limit.count()) +
                             " s; its last words:\n" + last_words(output));
  }
  const int status = child.wait();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error(arguments[0] + " failed (wait status " + std::to_string(status) + "); its last words:\n" +
                             last_words(output));
  }
  return output;
}

std::string sibling_program(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

}  // namespace bench
