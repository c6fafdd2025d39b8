// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/numa.hpp"

#include <numa.h>
#include <numaif.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

namespace shmem {

namespace {

class SystemNuma final : public Numa {
 public:
  [[nodiscard]] std::vector<int> nodes() const override {
    std::vector<int> allowed;
    if (::numa_available() < 0) return allowed;
    const Mask mask(::numa_get_mems_allowed());
    for (int node = 0; node <= ::numa_max_node(); ++node) {
      if (::numa_bitmask_isbitset(mask.get(), static_cast<unsigned>(node)) != 0) allowed.push_back(node);
    }
    return allowed;
  }

  [[nodiscard]] int my_node() const override {
    // Not numa_node_of_cpu(): it keeps a table that threads which ask at once would fill at once.
    unsigned cpu = 0;
    unsigned node = 0;
    return ::getcpu(&cpu, &node) == 0 ? static_cast<int>(node) : -1;
  }

  int bind(std::byte* start, std::size_t size, int mode, const std::vector<int>& nodes) override {
    const Mask mask(::numa_allocate_nodemask());
    for (const int node : nodes) ::numa_bitmask_setbit(mask.get(), static_cast<unsigned>(node));
    // One more than there are bits: the kernel counts to, not up to.
    return ::mbind(start, size, mode, mask->maskp, mask->size + 1, 0) == 0 ? 0 : errno;
  }

 private:
  struct Free {
    void operator()(bitmask* mask) const { ::numa_bitmask_free(mask); }
  };
  using Mask = std::unique_ptr<bitmask, Free>;
};

std::string list(const std::vector<int>& nodes) {
  std::string text = nodes.size() == 1 ? " (node " : " (nodes ";
  for (std::size_t i = 0; i < nodes.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(nodes[i]);
  return text + ")";
}

}  // namespace

Numa& system_numa() {
  static SystemNuma numa;
  return numa;
}

NumaPlacement place(std::byte* heap, std::size_t size, NumaPolicy policy, Numa& numa) {
  if (policy == NumaPolicy::kNone) return {"none", "SHMEM_NUMA=none"};
  std::vector<int> nodes = numa.nodes();
  if (nodes.empty()) return {"none", "this system knows no NUMA nodes"};
  const bool local = policy == NumaPolicy::kLocal;
  if (local) {
    const int mine = numa.my_node();
    if (std::find(nodes.begin(), nodes.end(), mine) == nodes.end()) {
      return {"none", "this PE's node, " + std::to_string(mine) + ", has no memory for it"};
    }
    nodes = {mine};
  }
  // Preferred, not bound: a bound mapping of huge pages raises SIGBUS where its node has none left.
  if (const int error = numa.bind(heap, size, local ? MPOL_PREFERRED : MPOL_INTERLEAVE, nodes); error != 0) {
    return {"none", "mbind: " + std::generic_category().message(error)};
  }
  return {(local ? "local" : "interleave") + list(nodes), ""};
}

}  // namespace shmem
