// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/same_node.hpp"

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
#include "shmem/bootstrap/pe_list.hpp"
#include "shmem/memory/fd.hpp"

namespace shmem {

namespace {

/// "PEs 0-2 on kiwi, PE 3 on lemon": which PEs say the same.
std::string places_text(const std::vector<NodeIdentity>& all, bool with_network) {
  std::map<std::tuple<std::array<char, 40>, std::uint64_t>, std::vector<int>> groups;
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    groups[{all[pe].boot, all[pe].network}].push_back(static_cast<int>(pe));
  }
  std::map<int, std::string> texts;  // by the first PE
  for (const auto& [key, pes] : groups) {
    const NodeIdentity& one = all[static_cast<std::size_t>(pes.front())];
    std::string text = pe_list(pes) + " on " + one.host.data();
    if (with_network) text += " (network namespace " + std::to_string(one.network) + ")";
    texts.emplace(pes.front(), std::move(text));
  }
  std::string text;
  for (const auto& [pe, one] : texts) text += (text.empty() ? "" : ", ") + one;
  return text;
}

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

NodeIdentity node_identity() {
  NodeIdentity identity;
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

Result<int> check_same_node(Bootstrap& bootstrap, const NodeIdentity& mine) {
  const auto all = allgather(bootstrap, mine);
  if (!all) return tl::make_unexpected(all.error());
  bool one_kernel = true;
  bool one_network = true;
  for (const NodeIdentity& other : *all) {
    one_kernel = one_kernel && other.boot == mine.boot;
    one_network = one_network && other.network == mine.network;
  }
  if (one_kernel && one_network) return processors_of(*all);
  if (one_kernel) {
    return fail(std::errc::not_supported,
                "shmem: the PEs run in different network namespaces of one host (containers?) and cannot hand memory "
                "to each other: " +
                    places_text(*all, true) + "; let them share one network namespace");
  }
  return fail(std::errc::not_supported, "shmem: the PEs run on different hosts: " + places_text(*all, false) +
                                            "; this libshmem shares memory on one host only: start all PEs on one");
}

}  // namespace shmem
