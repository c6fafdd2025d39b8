// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/binding.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <iterator>
#include <map>

#include "base/folder.hpp"
#include "shmem/bootstrap/message_text.hpp"

namespace shmem::launcher {

namespace {

Cpus common(const Cpus& a, const Cpus& b) {
  Cpus both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

/// Each core with its allowed hardware threads, in the order of the first of these.
std::vector<BindingTarget> cores(const Cpus& allowed, const std::string& sysfs) {
  std::vector<BindingTarget> found;
  for (const int cpu : allowed) {
    const std::string topology = fmt::format("{}/cpu/cpu{}/topology/", sysfs, cpu);
    auto threads = read_cpu_list(topology + "core_cpus_list");
    if (!threads) {
      threads = read_cpu_list(topology + "thread_siblings_list");  // Linux before 5.2
    }
    Cpus usable = common(allowed, threads.value_or(Cpus{cpu}));
    if (usable.empty()) {
      usable = {cpu};
    }
    if (usable.front() != cpu) {
      continue;  // its core is already in the list
    }
    found.push_back({fmt::format("core {}", found.size()), std::move(usable)});
  }
  return found;
}

/// The allowed processors of each NUMA node that has some, by its number.
std::map<int, Cpus> numa_nodes(const Cpus& allowed, const std::string& sysfs) {
  std::map<int, Cpus> by_number;
  for (const std::string& name : base::names_in(sysfs + "/node")) {
    if (name.rfind("node", 0) != 0) {
      continue;
    }
    const auto node = cpu_number(name.substr(4));
    const auto cpus = read_cpu_list(fmt::format("{}/node/{}/cpulist", sysfs, name));
    if (!node || !cpus) {
      continue;
    }
    if (Cpus usable = common(allowed, *cpus); !usable.empty()) {
      by_number.emplace(*node, std::move(usable));
    }
  }
  if (by_number.empty()) {
    by_number.emplace(0, allowed);
  }
  return by_number;
}

std::vector<BindingTarget> nodes(const std::vector<std::pair<int, Cpus>>& numa_nodes) {
  std::vector<BindingTarget> found;
  found.reserve(numa_nodes.size());
  for (const auto& [node, cpus] : numa_nodes) {
    found.push_back({fmt::format("NUMA node {}", node), cpus});
  }
  return found;
}

}  // namespace

std::optional<Bind> bind_of(const std::string& name) {
  if (name == "none") {
    return Bind::kNone;
  }
  if (name == "core") {
    return Bind::kCore;
  }
  if (name == "numa") {
    return Bind::kNuma;
  }
  return std::nullopt;
}

Binding::Binding(Bind bind, const Cpus& allowed, const std::string& sysfs)
    : bind_(bind), processors_(static_cast<int>(allowed.size())) {
  const auto by_number = numa_nodes(allowed, sysfs);
  nodes_.assign(by_number.begin(), by_number.end());
  switch (bind) {
    case Bind::kNone:
      places_ = {{"", allowed}};
      break;
    case Bind::kCore:
      places_ = cores(allowed, sysfs);
      break;
    case Bind::kNuma:
      places_ = nodes(nodes_);
      break;
  }
}

const BindingTarget& Binding::of(int pe, int pes) const {
  const auto index = static_cast<std::size_t>(pe);
  if (bind_ == Bind::kNuma) {
    return places_[index * places_.size() / static_cast<std::size_t>(pes)];
  }
  return places_[index % places_.size()];
}

std::string Binding::text(int pe, int pes) const {
  const BindingTarget& place = of(pe, pes);
  const std::string cpus = (place.cpus.size() == 1 ? "CPU " : "CPUs ") + run_list(place.cpus);
  std::vector<int> numa;
  for (const auto& [node, its_cpus] : nodes_) {
    if (!common(its_cpus, place.cpus).empty()) {
      numa.push_back(node);
    }
  }
  const std::string on =
      bind_ == Bind::kNuma ? "" : fmt::format(", NUMA node{} {}", numa.size() == 1 ? "" : "s", run_list(numa));
  return fmt::format("{} ({}{})", is_bound() ? "bound to " + place.name : "not bound", cpus, on);
}

}  // namespace shmem::launcher
