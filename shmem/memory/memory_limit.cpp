// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/memory_limit.hpp"

#include <sys/sysinfo.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

namespace shmem {

namespace {

using Bytes = std::optional<std::size_t>;

Bytes smaller(Bytes a, Bytes b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

/// Nothing where there is no such file, or it says "max".
Bytes read_limit(const std::string& file) {
  std::ifstream stream(file);
  std::size_t bytes = 0;
  if (stream >> bytes) return bytes;
  return std::nullopt;
}

/// The limits of `path` and of everything above it. In a container `path` may be the host's name for what is mounted
/// as the root here; then only the root's file is found.
Bytes limit_of_path(const std::string& mount, std::string path, const std::string& file) {
  Bytes limit = read_limit(mount + "/" + file);
  while (path.size() > 1) {
    std::string name = mount;
    name.append(path).append("/").append(file);
    limit = smaller(limit, read_limit(name));
    path.erase(path.rfind('/'));
  }
  return limit;
}

bool lists_memory(const std::string& controllers) {
  std::istringstream stream(controllers);
  std::string name;
  while (std::getline(stream, name, ',')) {
    if (name == "memory") return true;
  }
  return false;
}

std::string contents(const std::string& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace

std::optional<std::size_t> cgroup_memory_limit(const std::string& membership, const std::string& mount) {
  Bytes limit;
  std::istringstream lines(membership);
  std::string line;
  while (std::getline(lines, line)) {  // hierarchy:controllers:/path
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      limit = smaller(limit, limit_of_path(mount, path, "memory.max"));
    } else if (lists_memory(controllers)) {
      limit = smaller(limit, limit_of_path(mount + "/memory", path, "memory.limit_in_bytes"));
    }
  }
  return limit;
}

MemoryLimit memory_limit() {
  struct sysinfo info {};
  std::size_t memory = std::numeric_limits<std::size_t>::max();
  std::size_t swap = 0;
  if (::sysinfo(&info) == 0) {
    memory = info.totalram * info.mem_unit;
    swap = info.totalswap * info.mem_unit;
  }
  const Bytes cgroup = cgroup_memory_limit(contents("/proc/self/cgroup"), "/sys/fs/cgroup");
  if (cgroup && *cgroup < memory) return {*cgroup + swap, "memory limit of this control group, with swap"};
  return {memory + swap, "memory and swap of this machine"};
}

}  // namespace shmem
