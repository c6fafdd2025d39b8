// SPDX-License-Identifier: Apache-2.0
// How much memory this machine, or our container, can provide at all.
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

/// The minimum of the machine's memory with swap, the memory limits of our control groups, and, with strict accounting
/// (vm.overcommit_memory=2), what the kernel still promises.
MemoryLimit memory_limit();

/// What this process may still take: what is available on this machine, and what the control groups allow. Pages of
/// files do not count as taken, since the kernel takes them back. `root` is that of base::control_groups().
std::size_t memory_left(const std::string& root = "");

/// An Error if `bytes` more of address space exceed this process's limit (ulimit -v). The limit on data (ulimit -d)
/// does not apply to shared mappings.
Result<void> check_address_space(std::size_t bytes);

/// Whether the kernel takes memory for a mapping at once: the process has called mlockall(MCL_FUTURE), without
/// MCL_ONFAULT.
bool locks_new_memory();

/// The smallest memory limit of the control groups of this process, versions 1 and 2, those above included. `root` is
/// that of base::control_groups().
std::optional<std::size_t> cgroup_memory_limit(const std::string& root = "");
/// The same for swap; version 2 only, the first version has no such limit.
std::optional<std::size_t> cgroup_swap_limit(const std::string& root = "");

/// What may still be committed; nothing without a limit. `overcommit` is the text of /proc/sys/vm/overcommit_memory,
/// `meminfo` that of /proc/meminfo.
std::optional<std::size_t> commit_limit(const std::string& overcommit, const std::string& meminfo);

}  // namespace shmem
