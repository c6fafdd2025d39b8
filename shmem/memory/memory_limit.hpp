// SPDX-License-Identifier: Apache-2.0
// How much memory this machine, or the container we are in, can give at all.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace shmem {

struct MemoryLimit {
  std::size_t bytes;
  std::string source;  // "memory and swap of this machine"
};

/// The smaller of the machine's memory with swap and the memory limits of our control groups.
MemoryLimit memory_limit();

/// The smallest limit of the control groups that `membership` (the text of /proc/self/cgroup) names, versions 1 and 2,
/// their parents included. `mount` is where they are mounted: /sys/fs/cgroup.
std::optional<std::size_t> cgroup_memory_limit(const std::string& membership, const std::string& mount);

}  // namespace shmem
