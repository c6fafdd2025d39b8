// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/traces.hpp"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/fd.hpp"

namespace test_support {
namespace {

using Clock = std::chrono::steady_clock;

/// The kernel may take its time to tear down a large process on a busy machine.
constexpr std::chrono::seconds kTeardownLimit{120};

/// If the process ends meanwhile, what was read so far.
std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();  // treats a failed read as the end; an iterator would throw
  return text.str();
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") == std::string::npos) {
      all.push_back(static_cast<pid_t>(std::stol(name)));
    }
  }
  return all;
}

/// The memfds that a process has mapped, as "device inode".
std::set<std::string> mapped_memory(pid_t pid) {
  std::set<std::string> found;
  std::istringstream lines(contents("/proc/" + std::to_string(pid) + "/maps"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string addresses, rights, offset, device, inode, name;
    fields >> addresses >> rights >> offset >> device >> inode >> name;
    if (name.rfind("/memfd:", 0) == 0) {
      found.insert(std::string(device).append(" ").append(inode));
    }
  }
  return found;
}

/// The abstract sockets of jobs and devices.
std::set<std::string> sockets() {
  std::set<std::string> found;
  std::istringstream lines(contents("/proc/self/net/unix"));
  for (std::string line; std::getline(lines, line);) {
    const auto name = line.find(" @");
    if (name == std::string::npos) {
      continue;
    }
    const std::string text = line.substr(name + 1);
    if (text.rfind("@shmem-", 0) == 0 || text.rfind("@gba-", 0) == 0) {
      found.insert(text);
    }
  }
  return found;
}

/// Huge pages that are in use or promised.
long huge_pages() {
  std::istringstream lines(contents("/proc/meminfo"));
  long taken = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string name;
    long value = 0;
    fields >> name >> value;
    if (name == "HugePages_Total:" || name == "HugePages_Rsvd:") {
      taken += value;
    } else if (name == "HugePages_Free:") {
      taken -= value;
    }
  }
  return taken;
}

}  // namespace

void have_own_sockets() {
  if (::unshare(CLONE_NEWNET) != 0) {
    return;
  }
  // The loopback of a new namespace is down, and jobs on several nodes need it.
  const base::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  if (::ioctl(socket.get(), SIOCGIFFLAGS, &loopback) == 0) {
    loopback.ifr_flags = static_cast<short>(loopback.ifr_flags | IFF_UP);
    ::ioctl(socket.get(), SIOCSIFFLAGS, &loopback);
  }
}

Traces::Traces(std::string mark)
    : mark_(std::move(mark)), sockets_before_(sockets()), huge_pages_before_(huge_pages()) {}

std::vector<pid_t> Traces::processes() const {
  std::vector<pid_t> found;
  for (const pid_t pid : all_processes()) {
    const std::string environment = contents("/proc/" + std::to_string(pid) + "/environ");
    if (environment.find(mark_ + '\0') != std::string::npos) {
      found.push_back(pid);
    }
  }
  return found;
}

void Traces::note_memory() {
  for (const pid_t pid : processes()) {
    memory_.merge(mapped_memory(pid));
  }
}

std::string Traces::look() const {
  std::string text;
  for (const pid_t pid : processes()) {
    text += "process " + std::to_string(pid) + ": " + contents("/proc/" + std::to_string(pid) + "/comm");
  }
  for (const pid_t pid : all_processes()) {
    for (const std::string& memory : mapped_memory(pid)) {
      if (memory_.count(memory) > 0) {
        text += "memfd " + memory + " is mapped by process " + std::to_string(pid) + "\n";
      }
    }
  }
  for (const std::string& socket : sockets()) {
    if (sockets_before_.count(socket) == 0) {
      text += "socket " + socket + "\n";
    }
  }
  if (const long more = huge_pages() - huge_pages_before_; more > 0) {
    text += std::to_string(more) + " huge pages\n";
  }
  return text;
}

std::string Traces::left() const {
  const auto deadline = Clock::now() + kTeardownLimit;
  std::string text = look();
  while (!text.empty() && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    text = look();
  }
  return text;
}

}  // namespace test_support
