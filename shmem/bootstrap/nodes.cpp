// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/nodes.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <cstring>
#include <map>
#include <string>
#include <tuple>

#include "shmem/bootstrap/allgather.hpp"
#include "shmem/memory/fd.hpp"

namespace shmem {

namespace {

/// What control groups leave to all PEs together, in whole processors; PEs of one group share its quota. Nothing if
/// there is a PE without a limit.
std::optional<int> quota_of(const std::vector<NodeIdentity>& all) {
  std::map<std::uint64_t, std::uint64_t> groups;
  for (const NodeIdentity& one : all) {
    if (one.quota.thousandths == 0) return std::nullopt;
    groups[one.quota.group] = one.quota.thousandths;
  }
  std::uint64_t sum = 0;
  for (const auto& [group, thousandths] : groups) sum += thousandths;
  return static_cast<int>(std::clamp<std::uint64_t>(sum / 1000, 1, INT_MAX));
}

/// What makes a node one.
auto key_of(const NodeIdentity& one) {
  return std::tuple(one.boot, one.network, one.given);
}

int processors_of(const std::vector<NodeIdentity>& all) {
  int count = 0;
  for (std::size_t word = 0; word < NodeIdentity{}.processors.size(); ++word) {
    std::uint64_t together = 0;
    for (const NodeIdentity& one : all) together |= one.processors[word];
    count += std::popcount(together);
  }
  return std::min(count, quota_of(all).value_or(count));
}

}  // namespace

NodeIdentity node_identity(const std::string& given) {
  NodeIdentity identity;
  given.copy(identity.given.data(), identity.given.size() - 1);
  const UniqueFd boot(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (boot && ::read(boot.get(), identity.boot.data(), identity.boot.size() - 1) < 0) identity.boot = {};
  struct stat network {};
  if (::stat("/proc/self/ns/net", &network) == 0) identity.network = network.st_ino;
  ::gethostname(identity.host.data(), identity.host.size() - 1);
  cpu_set_t usable;
  static_assert(sizeof(usable) == sizeof(identity.processors));
  if (::sched_getaffinity(0, sizeof(usable), &usable) == 0) {
    std::memcpy(identity.processors.data(), &usable, sizeof(usable));
  }
  identity.quota = cpu_quota().value_or(CpuQuota{});
  return identity;
}

Result<Whereabouts> find_nodes(Bootstrap& bootstrap, const NodeIdentity& mine) {
  const auto all = allgather(bootstrap, mine);
  if (!all) return tl::make_unexpected(all.error());
  Nodes nodes;
  std::vector<int> sizes;
  std::map<decltype(key_of(mine)), int> known;
  std::vector<NodeIdentity> of_node;
  std::vector<NodeIdentity> of_kernel;
  for (std::size_t pe = 0; pe < all->size(); ++pe) {
    const NodeIdentity& one = (*all)[pe];
    const auto [found, is_new] = known.emplace(key_of(one), static_cast<int>(sizes.size()));
    if (is_new) {
      sizes.push_back(0);
      nodes.hosts.emplace_back(one.host.data());
    }
    nodes.node_of.push_back(found->second);
    nodes.number_here.push_back(sizes[static_cast<std::size_t>(found->second)]++);
    if (key_of(one) == key_of(mine)) {
      nodes.here.push_back(static_cast<int>(pe));
      of_node.push_back(one);
    }
    if (one.boot == mine.boot) of_kernel.push_back(one);
  }
  nodes.count = static_cast<int>(sizes.size());
  nodes.mine = known.at(key_of(mine));
  nodes.neighbours = static_cast<int>(of_kernel.size() - of_node.size());
  nodes.processors = processors_of(of_kernel);
  return Whereabouts{nodes.several() ? std::move(nodes) : Nodes{}, processors_of(of_node)};
}

}  // namespace shmem
