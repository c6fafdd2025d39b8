// SPDX-License-Identifier: Apache-2.0
#include "shmem/cores/cpu_quota.hpp"

#include <sys/stat.h>

#include <fstream>

#include "base/control_groups.hpp"

namespace shmem {
namespace {

std::uint64_t thousandths(std::int64_t quota, std::int64_t period) {
  return quota > 0 && period > 0 ? static_cast<std::uint64_t>(quota) * 1000 / static_cast<std::uint64_t>(period) : 0;
}

/// For one group; 0: no limit.
std::uint64_t limit_of(const std::string& folder, bool unified) {
  std::int64_t quota = 0;
  std::int64_t period = 0;
  if (unified) {
    std::ifstream(folder + "/cpu.max") >> quota >> period;  // "max 100000" is no number
  } else {
    std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  }
  return thousandths(quota, period);
}

std::uint64_t throttled_in(const std::string& folder) {
  std::ifstream in(folder + "/cpu.stat");
  std::uint64_t count = 0;
  for (std::string name; in >> name >> count;) {
    if (name == "nr_throttled") {
      return count;
    }
  }
  return 0;
}

std::uint64_t identity_of(const std::string& folder) {
  struct stat status {};
  return ::stat(folder.c_str(), &status) == 0 ? status.st_dev << 40 ^ status.st_ino : 0;
}

}  // namespace

std::optional<CpuQuota> cpu_quota(const std::string& root) {
  std::optional<CpuQuota> tightest;
  for (const base::ControlGroup& group : base::control_groups("cpu", root)) {
    const std::uint64_t limit = limit_of(group.folder, group.unified);
    if (limit != 0 && (!tightest || limit < tightest->thousandths)) {
      tightest = CpuQuota{identity_of(group.folder), limit};
    }
  }
  return tightest;
}

std::uint64_t times_throttled(const std::string& root) {
  std::uint64_t times = 0;
  for (const base::ControlGroup& group : base::control_groups("cpu", root)) {
    times += throttled_in(group.folder);
  }
  return times;
}

}  // namespace shmem
