// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/leftovers.hpp"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

namespace shmem::launcher {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLook{5};
/// A process that the kernel does not let die is not waited for.
constexpr milliseconds kKillLimit{5000};

std::optional<pid_t> process_number(const char* name) {
  pid_t pid = 0;
  const char* end = name + std::strlen(name);
  const auto [rest, error] = std::from_chars(name, end, pid);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return pid;
}

/// From /proc/PID/stat: "PID (name, of any characters) state parent ...".
pid_t parent_of(pid_t pid) {
  std::ifstream stream("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(stream, text, '\0');
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos || text.size() < name_end + 4) return -1;
  return static_cast<pid_t>(std::atoi(text.c_str() + name_end + 4));
}

/// Our children that still run, but `kept`. Those that have exited are waited for.
std::vector<pid_t> running(const std::vector<pid_t>& kept) {
  std::vector<pid_t> all = children();
  all.erase(std::remove_if(all.begin(), all.end(),
                           [&](pid_t pid) {
                             if (std::find(kept.begin(), kept.end(), pid) != kept.end()) return true;
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
  if (!processes) return found;
  const pid_t self = ::getpid();
  while (const dirent* entry = ::readdir(processes.get())) {
    const auto pid = process_number(entry->d_name);
    if (pid && parent_of(*pid) == self) found.push_back(*pid);
  }
  return found;
}

int end_leftovers(const std::vector<pid_t>& kept, milliseconds grace) {
  const auto patience = Clock::now() + grace;
  const auto limit = patience + kKillLimit;
  std::set<pid_t> asked;
  for (;;) {
    const std::vector<pid_t> left = running(kept);
    const auto now = Clock::now();
    if (left.empty() || now >= limit) return static_cast<int>(asked.size());
    for (const pid_t pid : left) {
      const bool is_new = asked.insert(pid).second;
      if (now >= patience) {
        ::kill(pid, SIGKILL);
      } else if (is_new) {
        ::kill(pid, SIGTERM);
        ::kill(pid, SIGCONT);
      }
    }
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace shmem::launcher
