// SPDX-License-Identifier: Apache-2.0
// The control groups of this process: where their files are.
#pragma once

#include <string>
#include <vector>

namespace base {

struct ControlGroup {
  bool unified;        // version 2
  std::string folder;  // of its files
  std::string name;    // "/a/b", as seen from the root of what is mounted
};

/// For each mounted file system of version 2, and of version 1 with `controller` ("cpu"): this process's group, then
/// the groups above it up to the mount point. Reads /proc/self/mountinfo and /proc/self/cgroup; `root` is prefixed to
/// all paths.
std::vector<ControlGroup> control_groups(const std::string& controller, const std::string& root = "");

}  // namespace base
