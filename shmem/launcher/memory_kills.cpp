// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/memory_kills.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>

#include "base/size_text.hpp"

namespace shmem::launcher {

namespace {

/// The limit of one group; nothing if it has none. Version 1 writes a very large number for that.
std::optional<std::uint64_t> limit_of(const base::ControlGroup& group) {
  std::ifstream file(group.folder + (group.unified ? "/memory.max" : "/memory.limit_in_bytes"));
  std::uint64_t bytes = 0;
  constexpr std::uint64_t kNone = std::uint64_t{1} << 60;
  return file >> bytes && bytes < kNone ? std::optional(bytes) : std::nullopt;
}

}  // namespace

MemoryKills::MemoryKills(const std::string& root) {
  for (base::ControlGroup& group : base::control_groups("memory", root)) {
    const Counts now = count(group);
    groups_.push_back({std::move(group), now});
  }
}

MemoryKills::Counts MemoryKills::count(const base::ControlGroup& group) {
  std::ifstream file(group.folder + (group.unified ? "/memory.events" : "/memory.oom_control"));
  Counts counts;
  std::string name;
  for (std::uint64_t value = 0; file >> name >> value;) {
    if (name == "oom_kill") {
      counts.kills = value;
    } else if (name == "oom") {
      counts.limits = value;
    }
  }
  return counts;
}

std::string MemoryKills::reason() const {
  bool killed = false;
  const Group* limited = nullptr;  // the lowest one whose limit ended an allocation
  for (const Group& group : groups_) {
    const Counts now = count(group.place);
    killed = killed || now.kills > group.before.kills;
    // Version 1 does not tell whose limit it was: then it is the lowest limit that there is.
    const bool exceeded = group.place.unified ? now.limits > group.before.limits : limit_of(group.place).has_value();
    if (limited == nullptr && exceeded) {
      limited = &group;
    }
  }
  if (!killed) {
    return "";
  }
  if (limited == nullptr) {
    return "the memory of this machine";
  }
  const auto limit = limit_of(limited->place);
  return fmt::format("the memory limit of control group {}{}", limited->place.name,
                     limit ? ", " + base::size_text(*limit) : " or of one below it");
}

}  // namespace shmem::launcher
