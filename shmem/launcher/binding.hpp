// SPDX-License-Identifier: Apache-2.0
// Which processors each PE may run on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shmem/cores/processors.hpp"

namespace shmem::launcher {

enum class Bind { kNone, kCore, kNuma };

/// What "none", "core" and "numa" mean; nothing for other texts.
std::optional<Bind> bind_of(const std::string& name);

/// Somewhere to bind a PE to.
struct BindingTarget {
  std::string name;  // "core 3", "NUMA node 1"; empty: anywhere
  Cpus cpus;         // at least one
};

/// Where the PEs of one job run. Constant.
class Binding {
 public:
  /// `sysfs` is /sys/devices/system. Missing information is assumed to be the simplest: each processor is a core, and
  /// all are on one node. Only `allowed` processors are used. REQUIRES: allowed is not empty.
  Binding(Bind bind, const Cpus& allowed, const std::string& sysfs);

  [[nodiscard]] bool is_bound() const { return bind_ != Bind::kNone; }
  /// For PE `pe` of `pes`. Cores are assigned in turn, again from the first when there are more PEs than cores; nodes
  /// in blocks, so that neighbours are near each other.
  [[nodiscard]] const BindingTarget& of(int pe, int pes) const;
  /// "bound to core 1 (CPU 1, NUMA node 0)", "not bound (CPUs 0-3, NUMA nodes 0, 1)".
  [[nodiscard]] std::string text(int pe, int pes) const;
  /// The number of processors that all PEs together may use.
  [[nodiscard]] int processors() const { return processors_; }

 private:
  Bind bind_;
  int processors_;
  std::vector<BindingTarget> places_;
  std::vector<std::pair<int, Cpus>> nodes_;  // each NUMA node that has allowed processors
};

}  // namespace shmem::launcher
