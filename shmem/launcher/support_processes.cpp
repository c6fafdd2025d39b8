// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/support_processes.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "base/number.hpp"
#include "base/random_name.hpp"
#include "shmem/launcher/child.hpp"
#include "shmem/launcher/streams.hpp"
#include "uapi/gba_device.h"

namespace shmem::launcher {

namespace {

/// The body of the guard process. `lifeline` reads as ended when the last process that holds the other end is gone.
[[noreturn]] void stand_guard(int lifeline) {
  sigset_t all{};
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::setpgid(0, 0);
  ::prctl(PR_SET_NAME, "oshrun-guard");
  // Keeps no descriptor open whose end others wait for: standard output, and the other end of the lifeline.
  ::dup2(lifeline, STDIN_FILENO);
  ::close_range(STDIN_FILENO + 1, ~0U, 0);
  char byte = 0;
  base::retry([&] { return ::read(STDIN_FILENO, &byte, 1); });
  ::kill(0, SIGKILL);
  ::_exit(0);
}

}  // namespace

Result<Guard> Guard::start() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return fail_errno(errno, "cannot make a pipe");
  }
  const base::UniqueFd read(ends[0]);
  base::UniqueFd write(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) {
    return fail_errno(errno, "cannot start a process: fork (see ulimit -u)");
  }
  if (pid == 0) {
    write.reset();
    stand_guard(read.get());
  }
  ::setpgid(pid, pid);  // as the guard does itself: the group exists from here on
  return Guard(pid, std::move(write));
}

void Guard::signal_group(int signal) const {
  if (alive_) {
    ::kill(-pid_, signal);
  }
}

Guard::~Guard() {
  if (!alive_) {
    return;
  }
  ::kill(pid_, SIGKILL);
  base::retry([&] { return ::waitpid(pid_, nullptr, 0); });
}

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kProgram = "gba-fake-device";
constexpr milliseconds kStartLimit{60'000};
/// The time in which it may end by itself.
constexpr milliseconds kStopLimit{2000};
/// A process that the kernel does not kill is not waited for.
constexpr milliseconds kKillLimit{10000};
constexpr milliseconds kLookForEnd{2};

Result<std::string> find_device_program() {
  auto next_to_this = find_program(own_folder() + "/" + kProgram, "");
  if (next_to_this) {
    return next_to_this;
  }
  const char* path = std::getenv("PATH");
  auto found = find_program(kProgram, path == nullptr ? "" : path);
  if (found) {
    return found;
  }
  return fail(found.error().code, found.error().text + ", nor in the folder of oshrun");
}

/// True once the process has ended and was reaped.
bool await_end(pid_t pid, milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  for (;;) {
    const pid_t ended = ::waitpid(pid, nullptr, WNOHANG);
    if (ended == pid || (ended < 0 && errno == ECHILD)) {
      return true;
    }
    if (Clock::now() >= deadline) {
      return false;
    }
    std::this_thread::sleep_for(kLookForEnd);
  }
}

}  // namespace

Result<DeviceProcess> DeviceProcess::start(const sigset_t& mask, int ports) {
  const auto name = base::random_name();
  if (!name) {
    return name.error();
  }
  const auto file = find_device_program();
  if (!file) {
    return file.error();
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return fail_errno(errno, "cannot make a pipe");
  }
  base::UniqueFd output(ends[0]);
  base::UniqueFd its_output(ends[1]);
  auto reports = ExecReports::open();
  if (!reports) {
    return reports.error();
  }

  const std::string socket = "@gba-" + std::string(name->data(), name->size());
  ChildProgram program;
  program.file = *file;
  // Only this job uses the device: one PE may take all groups.
  program.arguments = {*file, "--socket", socket, "--group-limit", std::to_string(GBA_MAX_GROUPS)};
  if (ports > 0) {
    program.arguments.insert(program.arguments.end(), {"--ports", std::to_string(ports)});
  }
  program.environment = Environment().entries();
  program.output = its_output.get();
  const auto pid = launcher::start(program, mask, *reports);
  if (!pid) {
    return pid.error();
  }
  its_output.reset();  // so that its end can be seen
  DeviceProcess device(*pid, "vfio-user:" + socket, std::move(output));
  if (auto ready = device.await_ready(); !ready) {
    return fail(ready.error().code, "the fake device (" + *file + ") " + ready.error().text);
  }
  return device;
}

Result<void> DeviceProcess::await_ready() const {
  const auto deadline = Clock::now() + kStartLimit;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    pollfd poll{output_.get(), POLLIN, 0};
    if (left.count() <= 0) {
      return fail(std::errc::timed_out, "was not ready within 60 s");
    }
    if (::poll(&poll, 1, static_cast<int>(left.count())) <= 0) {
      continue;
    }
    char byte = 0;
    const ssize_t got = ::read(output_.get(), &byte, 1);
    if (got == 1 && byte == '\n') {
      return {};
    }
    if (got == 0) {
      return fail(std::errc::no_child_process, "ended before it was ready");
    }
  }
}

DeviceProcess::~DeviceProcess() {
  if (pid_ < 0) {
    return;
  }
  ::kill(pid_, SIGTERM);
  if (await_end(pid_, kStopLimit)) {
    return;
  }
  ::kill(pid_, SIGKILL);
  if (!await_end(pid_, kKillLimit)) {
    say(fmt::format("the fake device (pid {}) does not end", pid_));
  }
}

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLeftoverLook{5};

/// From /proc/PID/stat: "PID (name, of any characters) state parent ...".
pid_t parent_of(pid_t pid) {
  std::ifstream stream(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(stream, text, '\0');
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos || text.size() < name_end + 4) {
    return -1;
  }
  return static_cast<pid_t>(std::atoi(text.c_str() + name_end + 4));
}

/// Running children, except `kept`. Children that have exited are reaped.
std::vector<pid_t> running(const std::vector<pid_t>& kept) {
  std::vector<pid_t> all = children();
  all.erase(std::remove_if(all.begin(), all.end(),
                           [&](pid_t pid) {
                             if (std::find(kept.begin(), kept.end(), pid) != kept.end()) {
                               return true;
                             }
                             return ::waitpid(pid, nullptr, WNOHANG) == pid;
                           }),
            all.end());
  return all;
}

}  // namespace

std::vector<pid_t> children() {
  struct Close {
    void operator()(DIR* folder) const { ::closedir(folder); }
  };
  const std::unique_ptr<DIR, Close> processes(::opendir("/proc"));
  std::vector<pid_t> found;
  if (!processes) {
    return found;
  }
  const pid_t self = ::getpid();
  while (const dirent* entry = ::readdir(processes.get())) {
    const auto pid = base::number<pid_t>(entry->d_name);
    if (pid && parent_of(*pid) == self) {
      found.push_back(*pid);
    }
  }
  return found;
}

int end_leftovers(const std::vector<pid_t>& kept, milliseconds grace) {
  const auto kill_time = Clock::now() + grace;
  const auto limit = kill_time + kKillLimit;
  std::set<pid_t> asked;
  for (;;) {
    const std::vector<pid_t> left = running(kept);
    const auto now = Clock::now();
    if (left.empty() || now >= limit) {
      return static_cast<int>(asked.size());
    }
    for (const pid_t pid : left) {
      const bool is_new = asked.insert(pid).second;
      if (now >= kill_time) {
        ::kill(pid, SIGKILL);
      } else if (is_new) {
        ::kill(pid, SIGTERM);
        ::kill(pid, SIGCONT);
      }
    }
    std::this_thread::sleep_for(kLeftoverLook);
  }
}

}  // namespace shmem::launcher
