// SPDX-License-Identifier: Apache-2.0
#include "tests/support/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

namespace test_support {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPoll{2};

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// The program goes with the test, however that ends.
void die_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it has ended before it could be heard of
}

[[noreturn]] void exec_child(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                             const std::string& output) {
  ::setpgid(0, 0);
  const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  ::close(out);
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

std::string from_environment(const char* variable, const std::string& name) {
  const char* folder = std::getenv(variable);
  if (folder == nullptr) {
    throw std::runtime_error(std::string(variable) + " is not set: run the tests through ctest");
  }
  return std::string(folder) + "/" + name;
}

}  // namespace

TempDir::TempDir() {
  std::string name = std::filesystem::temp_directory_path() / "gba-test-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), "mkdtemp " + name);
  }
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Process::Process(std::vector<std::string> arguments, const std::vector<std::string>& environment) {
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) {
    throw std::system_error(errno, std::generic_category(), "fork");
  }
  if (pid_ == 0) {
    die_with_parent(parent);
    exec_child(arguments, environment, dir_.file("output"));
  }
  ::setpgid(pid_, pid_);
}

Process::~Process() {
  ::kill(-pid_, SIGKILL);
  if (!exit_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

std::string Process::output() const {
  return read_file(dir_.file("output"));
}

std::optional<Exit> Process::poll() {
  int status = 0;
  if (!exit_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    exit_ = WIFSIGNALED(status) ? Exit{-1, WTERMSIG(status)} : Exit{WEXITSTATUS(status), 0};
  }
  return exit_;
}

std::optional<Exit> Process::wait(Seconds limit) {
  const auto end = Clock::now() + limit;
  while (!poll() && Clock::now() < end) {
    std::this_thread::sleep_for(kPoll);
  }
  return exit_;
}

bool Process::wait_for_output(const std::string& text, Seconds limit) {
  const auto end = Clock::now() + limit;
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

std::string program(const std::string& name) {
  return from_environment("GBA_BIN", name);
}

std::string test_program(const std::string& name) {
  return from_environment("GBA_TEST_BIN", name);
}

Outcome run(std::vector<std::string> arguments, const std::vector<std::string>& environment, Seconds limit) {
  Process process(std::move(arguments), environment);
  const auto exit = process.wait(limit);
  return {exit.value_or(Exit{-1, SIGKILL}), process.output()};
}

std::vector<pid_t> processes_matching(const std::string& text) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") == std::string::npos &&
        read_file(entry.path() / "cmdline").find(text) != std::string::npos) {
      found.push_back(static_cast<pid_t>(std::stol(name)));
    }
  }
  return found;
}

bool none_matching(const std::string& text, Seconds limit) {
  const auto end = Clock::now() + limit;
  while (!processes_matching(text).empty()) {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

}  // namespace test_support
