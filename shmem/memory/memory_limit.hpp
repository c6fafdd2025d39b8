// SPDX-License-Identifier: Apache-2.0
// How much memory this machine, or the container we are in, can give at all.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "shmem/result.hpp"

namespace shmem {

struct MemoryLimit {
  std::size_t bytes;
  std::string source;  // "memory and swap of this machine"
};

/// The least of the machine's memory with swap, the memory limits of our control groups, and what the kernel still
/// promises where it promises no more than it has (vm.overcommit_memory=2).
MemoryLimit memory_limit();

/// An Error if `bytes` more of address space are beyond this process's limit on it (ulimit -v). The one on data
/// (ulimit -d) does not matter: shared mappings are none.
Result<void> check_address_space(std::size_t bytes);

/// The smallest limit of the control groups that `membership` (the text of /proc/self/cgroup) names, versions 1 and 2,
/// their parents included. `mount` is where they are mounted: /sys/fs/cgroup.
std::optional<std::size_t> cgroup_memory_limit(const std::string& membership, const std::string& mount);
/// The same of what they may swap out; version 2 only, the first version has no such limit.
std::optional<std::size_t> cgroup_swap_limit(const std::string& membership, const std::string& mount);

/// What may still be committed; nothing if that is not limited. `overcommit` is the text of
/// /proc/sys/vm/overcommit_memory, `meminfo` that of /proc/meminfo.
std::optional<std::size_t> commit_limit(const std::string& overcommit, const std::string& meminfo);

}  // namespace shmem
