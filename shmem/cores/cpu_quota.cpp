// SPDX-License-Identifier: Apache-2.0
#include "shmem/cores/cpu_quota.hpp"

#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <vector>

namespace shmem {
namespace {

/// A control group file system that can limit processor time.
struct Hierarchy {
  bool unified;       // version 2
  std::string top;    // the group that is seen at `mount`
  std::string mount;  // where
};

bool lists(const std::string& commas, const std::string& word) {
  return ("," + commas + ",").find("," + word + ",") != std::string::npos;
}

/// mountinfo writes blanks and similar characters as \ooo.
std::string unescape(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

/// proc(5): "36 35 0:30 TOP MOUNT options [tags...] - TYPE source super-options".
std::vector<Hierarchy> hierarchies(const std::string& root) {
  std::vector<Hierarchy> found;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) {
      continue;
    }
    std::istringstream before(line);
    std::istringstream after(line.substr(dash + 3));
    std::string skipped;
    std::string top;
    std::string mount;
    std::string type;
    std::string options;
    before >> skipped >> skipped >> skipped >> top >> mount;
    after >> type >> skipped >> options;
    if (type == "cgroup2" || (type == "cgroup" && lists(options, "cpu"))) {
      found.push_back({type == "cgroup2", unescape(top), unescape(mount)});
    }
  }
  return found;
}

/// cgroups(7): "0::PATH", or "4:cpu,cpuacct:PATH".
std::string own_group(const std::string& root, bool unified) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (unified ? controllers.empty() : lists(controllers, "cpu")) {
      return line.substr(second + 1);
    }
  }
  return "/";
}

/// The group's path below the mount point: "" or "/a/b".
std::string below_mount(const std::string& group, const std::string& top) {
  const std::string above = top == "/" ? "" : top;
  const bool inside =
      group.compare(0, above.size(), above) == 0 && (group.size() == above.size() || group[above.size()] == '/');
  // A group that is not below what is mounted cannot be seen from here, as in a container that shows its own only.
  std::string rest = inside ? group.substr(above.size()) : "";
  return rest == "/" ? "" : rest;
}

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

std::uint64_t identity_of(const std::string& folder) {
  struct stat status {};
  return ::stat(folder.c_str(), &status) == 0 ? status.st_dev << 40 ^ status.st_ino : 0;
}

void look_up(const std::string& root, const Hierarchy& hierarchy, std::optional<CpuQuota>& tightest) {
  const std::string top = root + hierarchy.mount;
  std::string path = below_mount(own_group(root, hierarchy.unified), hierarchy.top);
  for (;;) {
    const std::string folder = top + path;
    const std::uint64_t limit = limit_of(folder, hierarchy.unified);
    if (limit != 0 && (!tightest || limit < tightest->thousandths)) {
      tightest = CpuQuota{identity_of(folder), limit};
    }
    if (path.empty()) {
      return;
    }
    path.resize(path.rfind('/'));
  }
}

}  // namespace

std::optional<CpuQuota> cpu_quota(const std::string& root) {
  std::optional<CpuQuota> tightest;
  for (const Hierarchy& hierarchy : hierarchies(root)) {
    look_up(root, hierarchy, tightest);
  }
  return tightest;
}

}  // namespace shmem
