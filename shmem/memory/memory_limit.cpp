// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/memory_limit.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/control_groups.hpp"
#include "base/size_text.hpp"

namespace shmem {

namespace {

using Bytes = std::optional<std::size_t>;

/// The least limit of all groups: the number in `file`, or in version 1's `old_file`. Nothing if no group has a limit.
Bytes least_limit(const std::string& root, const char* file, const char* old_file) {
  Bytes least;
  for (const base::ControlGroup& group : base::control_groups("memory", root)) {
    const char* const name = group.unified ? file : old_file;
    std::ifstream stream(name != nullptr ? group.folder + "/" + name : "");
    std::size_t bytes = 0;
    if (stream >> bytes) {
      least = std::min(least.value_or(bytes), bytes);
    }
  }
  return least;
}

std::string contents(const std::string& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// "CommitLimit:    12345 kB" in bytes; 0 if it is not there.
std::size_t meminfo_value(const std::string& meminfo, const std::string& name) {
  std::istringstream lines(meminfo);
  std::string word;
  std::size_t kilobytes = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    if (words >> word >> kilobytes && word == name + ":") {
      return kilobytes << 10;
    }
  }
  return 0;
}

/// A line "NAME NUMBER" of memory.stat; 0 if it is not there.
std::size_t stat_value(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  std::string word;
  std::size_t value = 0;
  while (lines >> word >> value) {
    if (word == name) {
      return value;
    }
  }
  return 0;
}

/// What a control group may still take. Nothing: it has no limit.
Bytes left_in(const base::ControlGroup& group) {
  std::ifstream limits(group.folder + (group.unified ? "/memory.max" : "/memory.limit_in_bytes"));
  std::ifstream uses(group.folder + (group.unified ? "/memory.current" : "/memory.usage_in_bytes"));
  std::size_t limit = 0;
  std::size_t used = 0;
  if (!(limits >> limit) || !(uses >> used)) {
    return std::nullopt;
  }
  const std::string stat = contents(group.folder + "/memory.stat");
  const std::size_t files = stat_value(stat, group.unified ? "file" : "total_cache");
  const std::size_t shared = stat_value(stat, group.unified ? "shmem" : "total_shmem");
  used -= std::min(used, files - std::min(files, shared));
  return limit - std::min(limit, used);
}

/// The address space that this process uses.
std::size_t address_space_used() {
  std::ifstream stream("/proc/self/statm");
  std::size_t pages = 0;
  stream >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

std::optional<std::size_t> cgroup_memory_limit(const std::string& root) {
  return least_limit(root, "memory.max", "memory.limit_in_bytes");
}

std::optional<std::size_t> cgroup_swap_limit(const std::string& root) {
  return least_limit(root, "memory.swap.max", nullptr);
}

std::optional<std::size_t> commit_limit(const std::string& overcommit, const std::string& meminfo) {
  if (overcommit.empty() || overcommit.front() != '2') {
    return std::nullopt;
  }
  const std::size_t limit = meminfo_value(meminfo, "CommitLimit");
  return limit - std::min(limit, meminfo_value(meminfo, "Committed_AS"));
}

MemoryLimit memory_limit() {
  struct sysinfo info {};
  std::size_t memory = std::numeric_limits<std::size_t>::max();
  std::size_t swap = 0;
  if (::sysinfo(&info) == 0) {
    memory = info.totalram * info.mem_unit;
    swap = info.totalswap * info.mem_unit;
  }
  MemoryLimit limit{memory + swap, "memory and swap of this machine"};
  if (const Bytes cgroup = cgroup_memory_limit(); cgroup && *cgroup < memory) {
    const std::size_t may_swap = std::min(swap, cgroup_swap_limit().value_or(swap));
    limit = {*cgroup + may_swap, "memory limit of this control group, with swap"};
  }
  const Bytes commit = commit_limit(contents("/proc/sys/vm/overcommit_memory"), contents("/proc/meminfo"));
  if (commit && *commit < limit.bytes) {
    limit = {*commit, "memory that the kernel still promises (vm.overcommit_memory=2)"};
  }
  return limit;
}

std::size_t memory_left(const std::string& root) {
  std::size_t left = meminfo_value(contents(root + "/proc/meminfo"), "MemAvailable");
  for (const base::ControlGroup& group : base::control_groups("memory", root)) {
    left = std::min(left, left_in(group).value_or(left));
  }
  return left;
}

Result<void> check_address_space(std::size_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return {};
  }
  const std::size_t used = address_space_used();
  if (bytes <= limit.rlim_cur && used <= limit.rlim_cur - bytes) {
    return {};
  }
  return fail(
      std::errc::not_enough_memory,
      fmt::format("they take {} of address space, and this process may have {}, of which it uses {}; raise that limit "
                  "(ulimit -v)",
                  base::size_text(bytes), base::size_text(limit.rlim_cur), base::size_text(used)));
}

// /proc/self/smaps tells it too, but lists all mappings. A fresh page of this process alone is in memory only then.
bool locks_new_memory() {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* fresh = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) {
    return errno == EAGAIN;  // beyond the limit on locked memory
  }
  unsigned char in_memory = 0;
  const bool known = ::mincore(fresh, page, &in_memory) == 0;
  ::munmap(fresh, page);
  return known && (in_memory & 1) != 0;
}

}  // namespace shmem
