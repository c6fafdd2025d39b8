// SPDX-License-Identifier: Apache-2.0
// One member of a team on three nodes agrees with two others, whose messages the test writes. What all members get is
// checked by tests/model/survivors_on_nodes.pml, and by jobs in tests/fault/survive_nodes_test.cpp.
#include "shmem/team/spanning_survivors.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "shmem/net/shrink_tags.hpp"
#include "tests/unit/shmem/thread_nodes.hpp"

namespace {

using shmem::Job;
using shmem::ShrinkStep;
using shmem::SpanningSurvivors;
using shmem_test::ThreadNetwork;
using shmem_test::Wires;
using Words = std::vector<std::uint64_t>;

constexpr std::uint32_t kTeamId = 7;
constexpr std::uint64_t kMyId = 100;

/// The network of the member. What it sends as a proposal takes a while.
class MemberNetwork : public ThreadNetwork {
 public:
  using ThreadNetwork::ThreadNetwork;

  /// When the member has sent its first proposal.
  std::function<void(const Words&)> proposed{};

  shmem::Result<std::uint64_t> start_send(int pe, std::uint64_t tag, const void* from, std::size_t bytes) override {
    auto request = ThreadNetwork::start_send(pe, tag, from, bytes);
    if (request && tag == shrink_tag(kTeamId, 1, ShrinkStep::kProposal)) {
      sending_.insert(*request);
      Words words(bytes / sizeof(std::uint64_t));
      std::memcpy(words.data(), from, bytes);
      std::exchange(proposed, [](const Words&) {})(words);
    }
    return request;
  }
  shmem::Result<bool> test(std::uint64_t request) override {
    if (sending_.contains(request) && ++tests_ < kTests) {
      return false;
    }
    sending_.erase(request);
    return ThreadNetwork::test(request);
  }
  [[nodiscard]] std::size_t sending() const { return sending_.size(); }

 private:
  static constexpr int kTests = 20;
  int tests_ = 0;
  std::set<std::uint64_t> sending_;
};

/// One of three members, each on a node of its own.
class Survivor {
 public:
  explicit Survivor(int me) : me_(me), network_(wires_, me, std::chrono::seconds{20}) { others_answer({0, 1, 2}); }

  void loses(int other) { network_.lose(other); }
  /// Another member says that it has begun, and whom it has lost.
  void hears_begin(int other, std::uint64_t lost) { send(other, ShrinkStep::kBegun, {0, lost}); }
  void hears_proposal(int other, std::uint64_t id, std::uint64_t members) {
    send(other, ShrinkStep::kProposal, {id, members});
  }
  /// These repeat the member's proposal in their turns; the others are lost then.
  void others_answer(const std::set<int>& these) {
    network_.proposed = [this, these](const Words& words) {
      for (int other = 0; other < 3; ++other) {
        if (other != me_ && these.contains(other)) {
          send(other, ShrinkStep::kProposal, words);
        } else if (other != me_) {
          loses(other);
        }
      }
    };
  }

  shmem::Result<shmem::WhoIsLeft> agree() {
    shmem::Result<shmem::WhoIsLeft> left = shmem::fail(std::errc::io_error, "not run");
    shmem_test::run_job(1, [&](Job& job) {
      job.nodes = shmem_test::nodes_of({0, 1, 2}, me_);
      job.network = &network_;
      const shmem::TeamMap here{0, 1, 1};
      const shmem::TeamMap world{0, 1, 3};
      const shmem::SyncView view(job, here, 0);
      SpanningSurvivors survivors(job, here, view, 0, world, me_, kTeamId);
      left = survivors.agree(kMyId);
      still_sending_ = network_.sending();
    });
    return left;
  }
  // What the member has sent to another one.
  Words begin_for(int other) { return receive(other, ShrinkStep::kBegun); }
  Words proposal_for(int other) { return receive(other, ShrinkStep::kProposal); }
  /// When it was done.
  [[nodiscard]] std::size_t still_sending() const { return still_sending_; }

 private:
  void send(int other, ShrinkStep step, const Words& words) {
    ThreadNetwork theirs(wires_, other, std::chrono::seconds{20});
    ASSERT_TRUE(theirs.start_send(me_, shrink_tag(kTeamId, 1, step), words.data(), words.size() * sizeof words[0]));
  }
  Words receive(int other, ShrinkStep step) {
    ThreadNetwork theirs(wires_, other, std::chrono::seconds{20});
    Words words(2);
    const auto request =
        theirs.start_receive(me_, shrink_tag(kTeamId, 1, step), words.data(), words.size() * sizeof words[0]);
    const auto come = theirs.test(*request);
    EXPECT_TRUE(come && *come) << "nothing was sent to member " << other;
    return words;
  }

  Wires wires_;
  int me_;
  MemberNetwork network_;
  std::size_t still_sending_ = 0;
};

TEST(SpanningSurvivors, AreThoseThatHaveBegun) {
  Survivor member(0);
  member.hears_begin(1, 0);
  member.hears_begin(2, 0);
  const auto left = member.agree();
  ASSERT_TRUE(left) << left.error().text;
  EXPECT_EQ(left->members, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(left->id, kMyId);
  EXPECT_EQ(member.begin_for(1), (Words{0, 0}));
  EXPECT_EQ(member.proposal_for(1), (Words{kMyId, 0b111}));
  EXPECT_EQ(member.proposal_for(2), (Words{kMyId, 0b111}));
}

TEST(SpanningSurvivors, AreNotTheMemberThatDiedAfterItHadBegun) {
  Survivor member(0);
  member.hears_begin(1, 0);
  member.hears_begin(2, 0b010);  // later: member 0 has not noticed that death
  member.others_answer({2});
  const auto left = member.agree();
  ASSERT_TRUE(left) << left.error().text;
  EXPECT_EQ(left->members, (std::vector<int>{0, 2}));
  EXPECT_EQ(member.proposal_for(2), (Words{kMyId, 0b101}));
}

TEST(SpanningSurvivors, AreTheFirstOfTwoThatHaveLostEachOther) {
  Survivor member(0);
  member.hears_begin(1, 0b100);
  member.hears_begin(2, 0b010);
  const auto left = member.agree();
  ASSERT_TRUE(left) << left.error().text;
  EXPECT_EQ(left->members, (std::vector<int>{0, 1}));
}

TEST(SpanningSurvivors, HearWhomAMemberHasLostBefore) {
  Survivor member(0);
  member.loses(1);
  member.hears_begin(2, 0);
  member.others_answer({2});
  const auto left = member.agree();
  ASSERT_TRUE(left) << left.error().text;
  EXPECT_EQ(left->members, (std::vector<int>{0, 2}));
  EXPECT_EQ(member.begin_for(2), (Words{0, 0b010}));
}

/// It was late, has not heard of member 2, and must not leave that out.
TEST(SpanningSurvivors, AreThoseOfTheFirstProposal) {
  Survivor member(0);
  member.hears_begin(1, 0);
  member.hears_proposal(1, kMyId + 1, 0b110);
  member.others_answer({2});
  const auto left = member.agree();
  ASSERT_FALSE(left);
  EXPECT_EQ(left.error().code, std::errc::state_not_recoverable);
  EXPECT_EQ(member.proposal_for(2), (Words{kMyId + 1, 0b110}));
}

TEST(SpanningSurvivors, HaveTheProposalOfTheLastMemberBeforeItIsDone) {
  Survivor member(2);
  member.hears_begin(0, 0);
  member.hears_begin(1, 0);
  member.hears_proposal(0, kMyId + 1, 0b111);
  member.hears_proposal(1, kMyId + 1, 0b111);
  member.others_answer({0, 1});
  ASSERT_TRUE(member.agree());
  EXPECT_EQ(member.still_sending(), 0U);
}

}  // namespace
