// SPDX-License-Identifier: Apache-2.0
// How much processor time control groups leave to this process: what containers and batch systems limit, and no
// affinity shows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shmem {

/// The tightest limit on the way from this process's control group to the root.
struct CpuQuota {
  std::uint64_t group;        // which one that is: processes with the same number share the quota
  std::uint64_t thousandths;  // of a processor

  bool operator==(const CpuQuota&) const = default;
};

/// Nothing if no group has a limit, or the system has no control groups. Reads cpu.max (version 2), cpu.cfs_quota_us
/// and cpu.cfs_period_us (version 1) of the file systems that /proc/self/mountinfo names; `root` stands before all
/// paths.
std::optional<CpuQuota> cpu_quota(const std::string& root = "");

}  // namespace shmem
