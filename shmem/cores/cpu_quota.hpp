// SPDX-License-Identifier: Apache-2.0
// The processor time that control groups leave to this process: containers and batch systems limit it, and the affinity
// mask does not show it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shmem {

/// The tightest limit between this process's control group and the root.
struct CpuQuota {
  std::uint64_t group;        // processes with the same number share the quota
  std::uint64_t thousandths;  // in thousandths of a processor

  bool operator==(const CpuQuota&) const = default;
};

/// Nothing if no group has a limit, or the system has no control groups. Reads cpu.max (version 2), cpu.cfs_quota_us
/// and cpu.cfs_period_us (version 1) of the file systems in /proc/self/mountinfo; `root` is prefixed to all paths.
std::optional<CpuQuota> cpu_quota(const std::string& root = "");

/// How often the kernel has made processes of this process's groups wait because a limit was used up, since the groups
/// exist: nr_throttled in cpu.stat. 0 without groups.
std::uint64_t times_throttled(const std::string& root = "");

}  // namespace shmem
