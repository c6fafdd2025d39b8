// SPDX-License-Identifier: Apache-2.0
// Counts the messages and the rounds of each algorithm among 2 to 17 leaders of nodes.
#include "shmem/net/message_barrier.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <numeric>
#include <set>
#include <thread>
#include <utility>

#include "shmem/net/process_group.hpp"
#include "tests/unit/shmem/thread_network.hpp"

namespace {

using shmem::Algorithm;
using shmem::NodesChoice;

/// A link between members that counts what it carries. A message carries what its sender knows: who has arrived.
class CountingLink {
 public:
  CountingLink(const NodesChoice& choice, int members) {
    for (int me = 0; me < members; ++me) {
      members_.push_back({shmem::message_steps(choice, members, me), 0, {me}, 0, 0, false});
    }
  }

  /// Makes one barrier. False: the members wait for each other for ever.
  bool run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int me = 0; me < static_cast<int>(members_.size()); ++me) {
        moved = advance(me) || moved;
      }
    }
    return std::ranges::all_of(members_, [](const Member& member) { return member.step == member.steps.size(); });
  }

  /// The most messages that one member sends.
  [[nodiscard]] int most_sent() const { return std::ranges::max_element(members_, {}, &Member::sent)->sent; }
  [[nodiscard]] int sent() const {
    return std::accumulate(members_.begin(), members_.end(), 0,
                           [](int sum, const Member& member) { return sum + member.sent; });
  }
  /// The longest chain of messages, each of which is sent after the one before it was received.
  [[nodiscard]] int rounds() const { return std::ranges::max_element(members_, {}, &Member::round)->round; }
  /// Members that know of all others when they leave.
  [[nodiscard]] int know_all() const {
    return static_cast<int>(std::ranges::count_if(
        members_, [this](const Member& member) { return member.known.size() == members_.size(); }));
  }
  [[nodiscard]] bool is_empty() const { return messages_.empty(); }

 private:
  struct Member {
    std::vector<shmem::MessageStep> steps;
    std::size_t step;
    std::set<int> known;
    int round;  // of the last message received
    int sent;
    bool begun;  // the step
  };
  struct Message {
    std::set<int> known;
    int round;
  };

  bool advance(int me) {
    Member& member = members_[static_cast<std::size_t>(me)];
    if (member.step == member.steps.size()) {
      return false;
    }
    const shmem::MessageStep& step = member.steps[member.step];
    const bool begins = !std::exchange(member.begun, true);
    if (begins) {
      for (const int to : step.to) {
        EXPECT_TRUE(messages_.emplace(std::pair{me, to}, Message{member.known, member.round + 1}).second);
        ++member.sent;
      }
    }
    if (!std::ranges::all_of(step.from, [&](int from) { return messages_.contains({from, me}); })) {
      return begins;
    }
    for (const int from : step.from) {
      const auto message = messages_.extract({from, me});
      member.known.insert(message.mapped().known.begin(), message.mapped().known.end());
      member.round = std::max(member.round, message.mapped().round);
    }
    member.begun = false;
    ++member.step;
    return true;
  }

  std::vector<Member> members_;
  std::map<std::pair<int, int>, Message> messages_;
};

/// ceil(log_radix n)
int logarithm(int n, int radix = 2) {
  int rounds = 0;
  for (int reach = 1; reach < n; reach *= radix) {
    ++rounds;
  }
  return rounds;
}
/// Members at a distance i * radix^p, for i = 1 .. radix - 1.
int signals(int n, int radix) {
  int sum = 0;
  for (int distance = 1; distance < n; distance *= radix) {
    sum += std::min(radix - 1, (n - 1) / distance);
  }
  return sum;
}

/// Recursive doubling: from member a to member b a message chain flips each bit in which they differ, and is longer by
/// one at an end that has a member beyond the power of two.
int longest_doubling(int power, int beyond) {
  int longest = 0;
  for (int a = 0; a < power; ++a) {
    for (int b = 0; b < power; ++b) {
      const int flips = std::popcount(static_cast<unsigned>(a ^ b));
      longest = std::max(longest, flips + (a < beyond ? 1 : 0) + (b < beyond ? 1 : 0));
    }
  }
  return longest;
}

struct Expected {
  int most_sent;  // by one member
  int sent;       // by all
  int rounds;
};

/// What the algorithm says. The winner of a tournament meets ceil(log2 n) losers, of whom the last one has beaten all
/// others of its half only if n is a power of two. Each of the others loses once.
Expected expected(Algorithm algorithm, int n, int radix) {
  const int rounds = logarithm(n);
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
  const int beyond = n - power;
  switch (algorithm) {
    case Algorithm::kNpuV1:
    case Algorithm::kDissemination:
    case Algorithm::kHierarchical:
      return {rounds, n * rounds, rounds};
    case Algorithm::kNpuV2:
      return {signals(n, radix), n * signals(n, radix), logarithm(n, radix)};
    case Algorithm::kNpuV3:
      return {n - 1, n * (n - 1), 1};
    case Algorithm::kCentralCounter:
    case Algorithm::kBasic:
      return {n - 1, 2 * (n - 1), 2};
    case Algorithm::kTournament:
      return {rounds, 2 * (n - 1), 2 * logarithm(power)};
    case Algorithm::kRecursiveDoubling:
      return {logarithm(power) + (beyond > 0 ? 1 : 0), power * logarithm(power) + 2 * beyond,
              longest_doubling(power, beyond)};
    case Algorithm::kAdaptive:
      return expected(n <= 8 ? Algorithm::kNpuV3 : Algorithm::kRecursiveDoubling, n, radix);
  }
  return {};
}

void expect_counts(Algorithm algorithm, int n, int radix) {
  SCOPED_TRACE(std::string(shmem::name_of(algorithm)) + ", " + std::to_string(n) + " members, radix " +
               std::to_string(radix));
  CountingLink link({.algorithm = algorithm, .tuning = {.radix = radix}}, n);
  ASSERT_TRUE(link.run());
  EXPECT_TRUE(link.is_empty());
  EXPECT_EQ(link.know_all(), n);
  const Expected counts = expected(algorithm, n, radix);
  EXPECT_EQ(link.most_sent(), counts.most_sent);
  EXPECT_EQ(link.sent(), counts.sent);
  EXPECT_EQ(link.rounds(), counts.rounds);
}

TEST(MessageBarrier, HasTheMessagesAndRoundsOfItsAlgorithm) {
  for (const shmem::AlgorithmSpec& spec : shmem::kAlgorithms) {
    for (int n = 2; n <= 17; ++n) {
      for (int radix = 2; radix <= (spec.algorithm == Algorithm::kNpuV2 ? shmem::kMostRadix : 2); ++radix) {
        expect_counts(spec.algorithm, n, radix);
      }
    }
  }
}

TEST(MessageBarrier, AdaptsToProcessors) {
  CountingLink link({.algorithm = Algorithm::kAdaptive, .tuning = {.oversubscribed = true}}, 9);
  ASSERT_TRUE(link.run());
  EXPECT_EQ(link.sent(), 2 * 8);
}

TEST(MessageBarrier, OfOneMemberSendsNothing) {
  for (const shmem::AlgorithmSpec& spec : shmem::kAlgorithms) {
    EXPECT_TRUE(shmem::message_steps({.algorithm = spec.algorithm}, 1, 0).empty()) << spec.name;
  }
}

TEST(MessageBarrier, SaysWhatRunsInsteadOfAPull) {
  EXPECT_EQ(shmem::by_messages(Algorithm::kDissemination), Algorithm::kNpuV1);
  EXPECT_NE(shmem::message_note(Algorithm::kDissemination).find("npu_v1 instead of dissemination"), std::string::npos);
  for (const shmem::AlgorithmSpec& spec : shmem::kAlgorithms) {
    if (spec.algorithm != Algorithm::kDissemination) {
      EXPECT_EQ(shmem::by_messages(spec.algorithm), spec.algorithm);
    }
  }
}

/// Counts the messages that a process group starts.
class CountingNetwork final : public shmem_test::ThreadNetwork {
 public:
  using ThreadNetwork::ThreadNetwork;
  shmem::Result<std::uint64_t> start_send(int pe, std::uint64_t tag, const void* from, std::size_t bytes) override {
    ++sent_;
    return ThreadNetwork::start_send(pe, tag, from, bytes);
  }
  [[nodiscard]] int sent() const { return sent_; }

 private:
  int sent_ = 0;
};

/// Barriers of a process group, in one and in two phases. Returns the messages of all members per barrier.
int messages_of_group(Algorithm algorithm, int n) {
  constexpr int kBarriers = 4;
  shmem_test::Wires wires;
  wires.latest = std::chrono::microseconds{50};
  std::vector<std::atomic<int>> arrived(static_cast<std::size_t>(n));
  std::atomic<int> sent{0};
  std::vector<int> pes(static_cast<std::size_t>(n));
  std::iota(pes.begin(), pes.end(), 0);
  std::vector<std::jthread> threads;
  for (int me = 0; me < n; ++me) {
    threads.emplace_back([&, me] {
      CountingNetwork network(wires, me, std::chrono::seconds{20});
      shmem::ProcessGroup group(network, pes, me, 7);
      group.set_barrier({.algorithm = algorithm});
      for (int i = 1; i <= kBarriers; ++i) {
        arrived[static_cast<std::size_t>(me)] = i;
        if (i % 2 == 0) {
          EXPECT_TRUE(group.start_barrier());
          EXPECT_TRUE(group.finish_barrier());
        } else {
          EXPECT_TRUE(group.barrier());
        }
        EXPECT_TRUE(std::ranges::all_of(arrived, [i](const auto& theirs) { return theirs >= i; }));
      }
      sent += network.sent();
    });
  }
  threads.clear();
  EXPECT_EQ(wires.left(), 0U);
  return sent / kBarriers;
}

TEST(MessageBarrier, IsWhatAProcessGroupSends) {
  for (const shmem::AlgorithmSpec& spec : shmem::kAlgorithms) {
    for (const int n : {2, 3, 5, 8}) {
      EXPECT_EQ(messages_of_group(spec.algorithm, n), expected(spec.algorithm, n, shmem::kMostRadix).sent)
          << spec.name << ", " << n << " members";
    }
  }
}

}  // namespace
