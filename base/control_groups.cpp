// SPDX-License-Identifier: Apache-2.0
#include "base/control_groups.hpp"

#include <fstream>
#include <sstream>

namespace base {
namespace {

/// A control group file system.
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
std::vector<Hierarchy> hierarchies(const std::string& controller, const std::string& root) {
  std::vector<Hierarchy> found;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const auto dash = line.find(" - ");
    // Most lines are of other file systems.
    if (dash == std::string::npos || line.compare(dash + 3, 6, "cgroup") != 0 ||
        (line.compare(dash + 3, 7, "cgroup2") != 0 && line.find(controller, dash) == std::string::npos)) {
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
    if (type == "cgroup2" || (type == "cgroup" && lists(options, controller))) {
      found.push_back({type == "cgroup2", unescape(top), unescape(mount)});
    }
  }
  return found;
}

/// cgroups(7): "0::PATH", or "4:cpu,cpuacct:PATH".
std::string own_group(const std::string& controller, const std::string& root, bool unified) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (unified ? controllers.empty() : lists(controllers, controller)) {
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

}  // namespace

std::vector<ControlGroup> control_groups(const std::string& controller, const std::string& root) {
  std::vector<ControlGroup> groups;
  for (const Hierarchy& hierarchy : hierarchies(controller, root)) {
    const std::string top = root + hierarchy.mount;
    std::string path = below_mount(own_group(controller, root, hierarchy.unified), hierarchy.top);
    for (;;) {
      groups.push_back({hierarchy.unified, top + path, path.empty() ? "/" : path});
      if (path.empty()) {
        break;
      }
      path.resize(path.rfind('/'));
    }
  }
  return groups;
}

}  // namespace base
