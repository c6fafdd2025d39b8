// SPDX-License-Identifier: Apache-2.0
// The division of PEs into nodes, and the number of their processors.
#include "shmem/bootstrap/nodes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "shmem/bootstrap/bootstrap.hpp"
#include "tests/support/many_processors.hpp"

namespace shmem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// PE 0 of a job; the test sets what the other PEs report.
class Scripted : public Bootstrap {
 public:
  explicit Scripted(std::vector<NodeIdentity> all) : all_(std::move(all)) {}
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return static_cast<int>(all_.size()); }
  Result<std::vector<std::byte>> allgather(std::span<const std::byte> mine) override {
    std::vector<std::uint64_t> digests;
    std::ranges::transform(all_, std::back_inserter(digests), [](const NodeIdentity& node) { return digest_of(node); });
    const bool whole = mine.size() == sizeof(NodeIdentity);
    exchanged_ = exchanged_ + mine.size();
    const auto bytes = whole ? std::as_bytes(std::span(all_)) : std::as_bytes(std::span(digests));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  }
  /// Bytes that each PE has sent.
  [[nodiscard]] std::size_t exchanged() const { return exchanged_; }
  Result<void> barrier() override { return {}; }
  int abort(int status, const std::string& /*reason*/) override { return status; }
  [[nodiscard]] std::optional<std::string> aborted() const override { return std::nullopt; }
  void leave() override {}

 private:
  std::vector<NodeIdentity> all_;
  std::size_t exchanged_ = 0;
};

NodeIdentity node(const std::string& boot, std::uint64_t network, const std::string& host) {
  NodeIdentity identity;
  boot.copy(identity.boot.data(), identity.boot.size());
  identity.network = network;
  host.copy(identity.host.data(), identity.host.size());
  return identity;
}

TEST(Nodes, DifferByKernelNetworkNamespaceAndGivenName) {
  const auto kiwi = node("boot-1", 1, "kiwi");
  const auto lemon = node("boot-2", 1, "lemon");
  const auto pod = node("boot-1", 2, "pod");
  auto given = kiwi;
  given.given = {'x'};
  const auto nodes_of = [](const std::vector<NodeIdentity>& all) {
    Scripted bootstrap(all);
    return find_nodes(bootstrap, all[0]).value().nodes;
  };
  EXPECT_FALSE(nodes_of({kiwi, kiwi, kiwi}).several());
  EXPECT_FALSE(nodes_of({kiwi, node("boot-1", 1, "another name")}).several()) << "not by the host's name";
  EXPECT_EQ(nodes_of({kiwi, node("boot-2", 1, "kiwi")}).count, 2) << "not by the host's name";
  EXPECT_EQ(nodes_of({kiwi, pod}).count, 2);
  EXPECT_EQ(nodes_of({kiwi, given}).count, 2);
  auto copy = kiwi;  // of a virtual machine
  copy.hardware = {2, 1};
  EXPECT_EQ(nodes_of({kiwi, copy}).count, 2);
  EXPECT_EQ(nodes_of({node("", 1, "kiwi"), node("", 1, "lemon")}).count, 2) << "the kernel tells no id";
  EXPECT_FALSE(nodes_of({node("", 1, "kiwi"), node("", 1, "kiwi")}).several());
  const Nodes nodes = nodes_of({kiwi, lemon, lemon, kiwi, pod});
  EXPECT_EQ(nodes.count, 3);
  EXPECT_THAT(nodes.node_of, ElementsAre(0, 1, 1, 0, 2));
  EXPECT_THAT(nodes.here, ElementsAre(0, 3));
  EXPECT_THAT(nodes.number_here, ElementsAre(0, 0, 1, 1, 0));
  EXPECT_EQ(nodes.number(3), 1);
  EXPECT_EQ(nodes.number(4), -1);
  EXPECT_EQ(nodes.world(1), 3);
  EXPECT_EQ(nodes.host(2), "lemon");
  EXPECT_NE(node_identity().boot[0], '\0');
  EXPECT_NE(node_identity().network, 0U);
  EXPECT_STREQ(node_identity("abc").given.data(), "abc");
  EXPECT_EQ(node_identity().hardware, node_identity().hardware);
}

/// What each PE of a large job reads would grow to hundreds of kilobytes.
TEST(Nodes, ExchangeLittleIfAllPesAreAlike) {
  auto kiwi = node("boot-1", 1, "kiwi");
  kiwi.processors = {0b0111};
  kiwi.quota = {.group = 7, .thousandths = 2500};
  kiwi.locks_new_memory = true;
  Scripted alike(std::vector<NodeIdentity>(708, kiwi));
  const auto where = find_nodes(alike, kiwi).value();
  EXPECT_LE(alike.exchanged(), 16U);
  EXPECT_FALSE(where.nodes.several());
  EXPECT_EQ(where.processors, 2);
  EXPECT_EQ(where.first_locking, 0);
  EXPECT_EQ(where.first_without_survive, 0);
  auto other = kiwi;
  other.survives = true;
  Scripted different({other, other, kiwi});
  EXPECT_EQ(find_nodes(different, other).value().first_without_survive, 2);
}

TEST(Nodes, HaveTheSameLibrary) {
  auto kiwi = node("boot-1", 1, "kiwi");
  auto lemon = node("boot-2", 1, "lemon");
  lemon.library = {'9', '.', '0'};
  Scripted bootstrap({kiwi, kiwi, lemon});
  const auto found = find_nodes(bootstrap, kiwi);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().text, HasSubstr("PE 2 (on lemon) has libshmem 9.0, PE 0 (on kiwi) "));
  EXPECT_NE(node_identity().library[0], '\0');
}

TEST(Nodes, TellTheFirstPeThatLocksNewMemory) {
  const auto kiwi = node("boot-1", 1, "kiwi");
  auto locking = kiwi;
  locking.locks_new_memory = true;
  const auto first_of = [&kiwi](const std::vector<NodeIdentity>& all) {
    Scripted bootstrap(all);
    return find_nodes(bootstrap, kiwi).value().first_locking;
  };
  EXPECT_EQ(first_of({kiwi, kiwi}), -1);
  EXPECT_EQ(first_of({kiwi, locking, kiwi, locking}), 1);
}

TEST(Nodes, MayHaveMoreProcessorsThanASetOfTheCLibraryHolds) {
  test_support::many_processors = 4096;
  const auto processors = node_identity().processors;
  test_support::many_processors = 0;
  EXPECT_THAT(processors, ::testing::Each(UINT64_MAX));
}

TEST(Nodes, ShareProcessorsWithOthersOfTheirKernel) {
  auto kiwi = node("boot-1", 1, "kiwi");
  auto pod = node("boot-1", 2, "pod");
  auto lemon = node("boot-2", 1, "lemon");
  kiwi.processors = {0b0011};
  pod.processors = {0b0110};
  lemon.processors = {0b1000};
  const auto nodes_of = [](const std::vector<NodeIdentity>& all) {
    Scripted bootstrap(all);
    return find_nodes(bootstrap, all[0]).value().nodes;
  };
  const Nodes nodes = nodes_of({kiwi, lemon, pod, kiwi, pod, pod});
  EXPECT_EQ(nodes.neighbours, 3);
  EXPECT_EQ(nodes.processors, 3);
  EXPECT_TRUE(nodes.oversubscribed(1));
  EXPECT_FALSE(nodes_of({kiwi, lemon, pod}).oversubscribed(2));
  EXPECT_TRUE(nodes_of({kiwi, lemon, pod}).oversubscribed(3));
  EXPECT_FALSE(nodes_of({kiwi, lemon, lemon, lemon}).oversubscribed(100))
      << "no other node on this kernel: the node's own processors count";
  EXPECT_FALSE(nodes_of({kiwi, kiwi}).oversubscribed(100)) << "one node";
}

int processors_of(Bootstrap& bootstrap, const NodeIdentity& mine) {
  return find_nodes(bootstrap, mine).value().processors;
}

TEST(Nodes, CountTheProcessorsOfTheirPes) {
  auto one = node("boot-1", 1, "kiwi");
  auto two = one;
  one.processors = {0b0011, 1};
  two.processors = {0b0110};
  Scripted bootstrap({one, two, one});
  EXPECT_EQ(processors_of(bootstrap, one), 4);
  one.quota = {.group = 7, .thousandths = 2500};
  EXPECT_EQ(processors_of(*std::make_unique<Scripted>(std::vector{one, two, one}), one), 4) << "PE 1 has no quota";
  EXPECT_EQ(processors_of(*std::make_unique<Scripted>(std::vector{one, one}), one), 2) << "the quota of one group";
  two.quota = {.group = 8, .thousandths = 1000};
  EXPECT_EQ(processors_of(*std::make_unique<Scripted>(std::vector{one, two, one}), one), 3) << "the sum of two groups";
  one.quota = {.group = 7, .thousandths = 300};
  EXPECT_EQ(processors_of(*std::make_unique<Scripted>(std::vector{one}), one), 1);
  one.quota = {.group = 7, .thousandths = 9000};
  EXPECT_EQ(processors_of(*std::make_unique<Scripted>(std::vector{one}), one), 3) << "limited by the affinity";
  Scripted alone({node_identity()});
  EXPECT_EQ(processors_of(alone, node_identity()), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace shmem
