// SPDX-License-Identifier: Apache-2.0
// Whether the kernel has killed processes because a control group, or the machine, was out of memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/control_groups.hpp"

namespace shmem::launcher {

/// Counts the kills in oshrun's control groups, in which the PEs are, too. Control groups of version 1 count those of
/// oshrun's own group only.
class MemoryKills {
 public:
  /// Kills from now on. `root` is prefixed to all paths.
  explicit MemoryKills(const std::string& root = "");

  /// What a process exceeded that SIGKILL ended: "the memory limit of control group /a, 512 MiB"; "" if no process was
  /// killed for memory.
  [[nodiscard]] std::string reason() const;

 private:
  struct Counts {
    std::uint64_t kills = 0;   // of processes in this group or below
    std::uint64_t limits = 0;  // how often the limit of this group, or of one below, ended an allocation
  };
  struct Group {
    base::ControlGroup place;
    Counts before;
  };

  static Counts count(const base::ControlGroup& group);

  std::vector<Group> groups_;  // from oshrun's own to the root
};

}  // namespace shmem::launcher
