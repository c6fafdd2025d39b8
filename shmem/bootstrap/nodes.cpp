// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/nodes.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>

#include "base/folder.hpp"
#include "base/hash.hpp"
#include "base/kernel.hpp"
#include "shmem/bootstrap/allgather.hpp"
#include "shmem/bootstrap/message_text.hpp"
#include "shmem/cores/processors.hpp"
#include "shmem/version.hpp"

namespace shmem {

namespace {

/// Counts the processors that some PEs together may use. The quotas of control groups count if all PEs have one; PEs of
/// one group share its quota.
class Processors {
 public:
  /// `one` stays there until the next call.
  void add(const NodeIdentity& one) {
    ++pes_;
    const NodeIdentity* const last = std::exchange(last_, &one);
    if (last != nullptr && last->processors == one.processors && last->quota == one.quota) {
      return;  // as most PEs of a node are
    }
    for (std::size_t word = 0; word < together_.size(); ++word) {
      together_[word] |= one.processors[word];
    }
    limited_ = limited_ && one.quota.thousandths != 0;
    groups_[one.quota.group] = one.quota.thousandths;
  }
  [[nodiscard]] int pes() const { return pes_; }
  [[nodiscard]] int count() const {
    int count = 0;
    for (const std::uint64_t word : together_) {
      count += std::popcount(word);
    }
    if (!limited_) {
      return count;
    }
    std::uint64_t sum = 0;
    for (const auto& [group, thousandths] : groups_) {
      sum += thousandths;
    }
    return std::min(count, static_cast<int>(std::clamp<std::uint64_t>(sum / 1000, 1, INT_MAX)));
  }

 private:
  decltype(NodeIdentity::processors) together_{};
  std::map<std::uint64_t, std::uint64_t> groups_;
  const NodeIdentity* last_ = nullptr;
  bool limited_ = true;
  int pes_ = 0;
};

/// PEs with the same key are on one node.
auto key_of(const NodeIdentity& one) {
  // Without an id of the kernel, as in some sandboxes, all machines would be one.
  const bool known = one.boot[0] != '\0';
  return std::tuple(one.boot, one.network, one.hardware, one.given, known ? decltype(one.host){} : one.host);
}

/// The same, without copies.
bool on_one_node(const NodeIdentity& one, const NodeIdentity& other) {
  return one.boot == other.boot && one.network == other.network && one.hardware == other.hardware &&
         one.given == other.given && (one.boot[0] != '\0' || one.host == other.host);
}

Result<void> check_libraries(std::span<const NodeIdentity> all) {
  const auto has = [&](std::size_t pe) {
    return fmt::format("PE {} (on {}) has libshmem {}", pe, all[pe].host.data(), all[pe].library.data());
  };
  for (std::size_t pe = 1; pe < all.size(); ++pe) {
    if (all[pe].library == all[0].library) {
      continue;
    }
    return fail(std::errc::protocol_not_supported,
                fmt::format("shmem: {}, {}: install the same version on all nodes", has(pe), has(0)));
  }
  return {};
}

/// The same in all namespaces that have the folder, whatever they call it, and unlike the number of a namespace. Why it
/// cannot be used is said when the PEs agree on their memory.
std::uint64_t folder_number(const std::string& folder) {
  constexpr std::uint64_t kIsFolder = std::uint64_t{1} << 63;
  struct stat status {};
  base::Fnv number;
  static_cast<void>(base::prepare_for_sockets(folder, "PEs"));  // makes it
  if (::stat(folder.c_str(), &status) != 0) {
    number.add(std::as_bytes(std::span(folder)));
  } else {
    const std::array<std::uint64_t, 2> inode{status.st_dev, status.st_ino};
    number.add(std::as_bytes(std::span(inode)));
  }
  return number.value() | kIsFolder;
}

}  // namespace

std::string Nodes::text() const {
  constexpr int kMost = 8;
  std::string text;
  for (int node = 0; node < std::min(count, kMost); ++node) {
    std::vector<int> pes;
    for (std::size_t pe = 0; pe < node_of.size(); ++pe) {
      if (node_of[pe] == node) {
        pes.push_back(static_cast<int>(pe));
      }
    }
    text += (node == 0 ? "" : ", ") + pe_list(pes) + (pes.size() == 1 ? " is on " : " are on ") +
            hosts[static_cast<std::size_t>(node)];
  }
  return text + (count > kMost ? ", ..." : "");
}

NodeIdentity node_identity(const std::string& given, const std::string& folder) {
  NodeIdentity identity;
  utsname system{};
  const std::string machine = ::uname(&system) == 0 ? system.machine : "";
  fmt::format("{} ({})", kVersion, machine).copy(identity.library.data(), identity.library.size() - 1);
  given.copy(identity.given.data(), identity.given.size() - 1);
  const base::Machine here = base::this_machine();
  identity.boot = here.boot;
  identity.host = here.host;
  if (folder.empty()) {
    identity.network = base::network_namespace();
    identity.hardware = here.hardware;
  } else {
    identity.network = folder_number(folder);
  }
  if (const auto cpus = own_cpus()) {
    for (const int cpu : *cpus) {
      const auto bit = static_cast<std::size_t>(cpu) % (64 * identity.processors.size());
      identity.processors[bit / 64] |= std::uint64_t{1} << (bit % 64);
    }
  }
  identity.quota = cpu_quota().value_or(CpuQuota{});
  return identity;
}

std::uint64_t digest_of(const NodeIdentity& identity) {
  base::Fnv digest;
  for (const auto text : {std::span<const char>(identity.library), std::span<const char>(identity.boot),
                          std::span<const char>(identity.given), std::span<const char>(identity.host)}) {
    digest.add(std::as_bytes(text));
  }
  digest.add(std::as_bytes(std::span(identity.hardware)));
  digest.add(std::as_bytes(std::span(identity.processors)));
  const std::array numbers{identity.network, identity.quota.group, identity.quota.thousandths,
                           std::uint64_t{identity.locks_new_memory ? 1U : 0U},
                           std::uint64_t{identity.survives ? 1U : 0U}};
  digest.add(std::as_bytes(std::span(numbers)));
  return digest.value();
}

namespace {

/// Collective: whether all PEs are like this one.
Result<bool> are_alike(Bootstrap& bootstrap, const NodeIdentity& mine) {
  const auto digests = allgather(bootstrap, digest_of(mine));
  if (!digests) {
    return digests.error();
  }
  // When the others compared theirs, that of a process that takes a PE's place was not among them.
  const auto skipped = static_cast<std::size_t>(bootstrap.rank());
  const auto& first = (*digests)[bootstrap.replaces() && skipped == 0 && digests->size() > 1 ? 1 : 0];
  for (std::size_t pe = 0; pe < digests->size(); ++pe) {
    if ((*digests)[pe] != first && !(bootstrap.replaces() && pe == skipped)) {
      return false;
    }
  }
  return true;
}

Whereabouts on_node_of(const NodeIdentity& all) {
  Processors processors;
  processors.add(all);
  return Whereabouts{.nodes = {},
                     .processors = processors.count(),
                     .first_locking = all.locks_new_memory ? 0 : -1,
                     .first_without_survive = all.survives ? -1 : 0};
}

}  // namespace

Result<Whereabouts> find_nodes(Bootstrap& bootstrap, const NodeIdentity& mine) {
  // A digest first: in a large job, each PE would read hundreds of kilobytes of what most often is the same.
  const auto alike = are_alike(bootstrap, mine);
  if (!alike) {
    return alike.error();
  }
  if (*alike) {
    return on_node_of(mine);
  }
  // Read where they are: those of a large job are many pages.
  const auto bytes = bootstrap.allgather(std::as_bytes(std::span(&mine, 1)));
  if (!bytes) {
    return bytes.error();
  }
  const std::span all(reinterpret_cast<const NodeIdentity*>(bytes->data()), bytes->size() / sizeof(NodeIdentity));
  if (auto same = check_libraries(all); !same) {
    return same.error();
  }
  Nodes nodes;
  std::vector<int> sizes;
  std::map<decltype(key_of(mine)), int> known;
  Processors of_node;
  Processors of_kernel;
  int node = 0;  // of the PE before
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    const NodeIdentity& one = all[pe];
    if (pe == 0 || !on_one_node(one, all[pe - 1])) {
      const auto [found, is_new] = known.emplace(key_of(one), static_cast<int>(sizes.size()));
      if (is_new) {
        sizes.push_back(0);
        nodes.hosts.emplace_back(one.host.data());
      }
      node = found->second;
    }
    nodes.node_of.push_back(node);
    nodes.number_here.push_back(sizes[static_cast<std::size_t>(node)]++);
    if (on_one_node(one, mine)) {
      nodes.here.push_back(static_cast<int>(pe));
      of_node.add(one);
    }
    if (one.boot == mine.boot) {
      of_kernel.add(one);
    }
  }
  nodes.count = static_cast<int>(sizes.size());
  nodes.mine = known.at(key_of(mine));
  nodes.neighbours = of_kernel.pes() - of_node.pes();
  nodes.processors = of_kernel.count();
  const auto first = [&](auto named) {
    const auto found = std::ranges::find_if(all, named);
    return found != all.end() ? static_cast<int>(found - all.begin()) : -1;
  };
  return Whereabouts{.nodes = nodes.several() ? std::move(nodes) : Nodes{},
                     .processors = of_node.count(),
                     .first_locking = first([](const NodeIdentity& one) { return one.locks_new_memory; }),
                     .first_without_survive = first([](const NodeIdentity& one) { return !one.survives; })};
}

}  // namespace shmem
