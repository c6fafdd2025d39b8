// SPDX-License-Identifier: Apache-2.0
// The model against a specification of a barrier: every interleaving of a small group, and random histories of large
// ones.
#include <algorithm>
#include <bit>
#include <random>

#include "tests/unit/fake_device/model_fixture.hpp"

namespace {

using fake_device_test::Device;
using fake_device_test::error_word;

/// What a barrier is: nobody gets past k before all have come to k, and a broken one lets nobody past what it released.
class Specification {
 public:
  Specification(unsigned members, std::uint64_t start) : arrived_(members, start), start_(start) {}
  void arrive(unsigned member, std::uint64_t k) {
    if (!broken_ && k == arrived_[member] + 1 && released() + 1 == k) {
      arrived_[member] = k;
    }
  }
  void break_it(unsigned code) {
    if (!broken_) {
      frozen_ = released();
      code_ = code;
      broken_ = true;
    }
  }
  [[nodiscard]] std::uint64_t released() const {
    return broken_ ? frozen_ : *std::min_element(arrived_.begin(), arrived_.end());
  }
  [[nodiscard]] std::uint64_t flag() const {
    return broken_ ? error_word(code_, frozen_) : released() == start_ ? 0 : released();
  }
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  std::vector<std::uint64_t> arrived_;
  std::uint64_t start_;
  std::uint64_t frozen_ = 0;
  unsigned code_ = 0;
  bool broken_ = false;
};

/// Members as the protocol lets them be: each is at its next arrival, may repeat its last one, or leave.
struct Step {
  unsigned member;
  enum Action { kNext, kRepeat, kLeave, kReset } action;
};

class Play {
 public:
  Play(unsigned members, std::uint64_t start)
      : device_(members),
        group_(device_.barrier(members, start)),
        spec_(members, start),
        at_(members, start),
        start_(start) {}

  /// False: the member cannot do that now.
  bool step(const Step& step) {
    const unsigned member = step.member;
    if (gone_.contains(member)) {
      return false;
    }
    switch (step.action) {
      case Step::kNext:
        if (at_[member] > spec_.released() || spec_.broken()) {
          return false;  // it waits
        }
        spec_.arrive(member, ++at_[member]);
        device_.arrive(group_, member, at_[member]);
        return true;
      case Step::kRepeat:
        if (at_[member] == start_) {
          return false;
        }
        device_.arrive(group_, member, at_[member], /*notify=*/true);
        return true;
      case Step::kLeave:
        gone_.insert(member);
        spec_.break_it(GBA_ERROR_LEAVE);
        device_.command(member, GBA_CMD_LEAVE, group_);
        return true;
      case Step::kReset:
        spec_.break_it(GBA_ERROR_RESET);
        device_.control(0, group_, Device::kRunning | GBA_CONTROL_RESET);
        return true;
    }
    return false;
  }

  void check() {
    EXPECT_EQ(device_.sequence(group_), spec_.released());
    for (unsigned member = 0; member < at_.size(); ++member) {
      // Before the first release a flag holds what JOIN left, or the start if an arrival was repeated: never more.
      const auto flag = device_.effects.flags[{member, group_}];
      if (!gone_.contains(member) && (flag != start_ || spec_.broken() || spec_.released() != start_)) {
        EXPECT_EQ(flag, spec_.flag()) << "member " << member;
      }
    }
  }
  [[nodiscard]] std::uint64_t released() const { return spec_.released() - start_; }
  [[nodiscard]] bool done(std::uint64_t rounds) const { return spec_.released() >= start_ + rounds; }

 private:
  Device device_;
  unsigned group_;
  Specification spec_;
  std::vector<std::uint64_t> at_;
  std::uint64_t start_;
  std::set<unsigned> gone_;
};

/// All histories of at most `depth` steps, up to `rounds` releases.
class Exhaustive {
 public:
  Exhaustive(unsigned members, std::uint64_t rounds, std::uint64_t start)
      : members_(members), rounds_(rounds), start_(start) {}

  std::size_t run(unsigned depth, std::vector<Step::Action> actions) {
    actions_ = std::move(actions);
    extend(depth);
    return histories_;
  }

 private:
  void extend(unsigned left) {
    if (::testing::Test::HasFailure()) {
      return;
    }
    for (unsigned member = 0; member < members_; ++member) {
      for (const auto action : actions_) {
        if (action == Step::kReset && member != 0) {
          continue;  // only the owner can
        }
        history_.push_back({member, action});
        if (replay() && left > 1) {
          extend(left - 1);
        }
        history_.pop_back();
      }
    }
  }

  // False: the last step is none, or the history is at its end.
  bool replay() {
    Play play(members_, start_);
    bool took_place = true;
    for (const auto& step : history_) {
      took_place = play.step(step);
    }
    if (!took_place) {
      return false;
    }
    ++histories_;
    play.check();
    return !play.done(rounds_);
  }

  unsigned members_;
  std::uint64_t rounds_;
  std::uint64_t start_;
  std::vector<Step::Action> actions_;
  std::vector<Step> history_;
  std::size_t histories_ = 0;
};

TEST(EveryInterleaving, OfTwoMembersAndThreeRoundsIsABarrier) {
  EXPECT_GT(Exhaustive(2, 3, 0).run(6, {Step::kNext}), 10U);
}

TEST(EveryInterleaving, OfThreeMembersAndThreeRoundsIsABarrier) {
  EXPECT_GT(Exhaustive(3, 3, 0).run(9, {Step::kNext}), 100U);
}

TEST(EveryInterleaving, OfTwoMembersWithRepeatsResetsAndLeavesIsABarrier) {
  EXPECT_GT(Exhaustive(2, 3, 0xfffffffeULL).run(6, {Step::kNext, Step::kRepeat, Step::kLeave, Step::kReset}), 1000U);
}

TEST(EveryInterleaving, OfThreeMembersWithRepeatsResetsAndLeavesIsABarrier) {
  EXPECT_GT(Exhaustive(3, 2, 7).run(5, {Step::kNext, Step::kRepeat, Step::kLeave, Step::kReset}), 1000U);
}

/// How many rounds were released.
std::uint64_t play_at_random(unsigned members, unsigned steps, unsigned seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  Play play(members, std::uint64_t{random()} << 16 | 0xfff0);
  for (unsigned count = 0; count < steps; ++count) {
    const auto member = static_cast<unsigned>(random() % members);
    // Rarely enough broken that rounds are released first, also by many members.
    const auto dice = random() % (members * 200);
    const auto action = dice == 0       ? Step::kLeave
                        : dice == 1     ? Step::kReset
                        : dice % 5 == 4 ? Step::kRepeat
                                        : Step::kNext;
    play.step({member, action});
  }
  play.check();
  return play.released();
}

TEST(RandomHistory, OfSmallGroupsIsABarrier) {
  std::uint64_t released = 0;
  for (unsigned seed = 0; seed < 300 && !::testing::Test::HasFailure(); ++seed) {
    released += play_at_random(1 + seed % 8, 500, seed);
  }
  EXPECT_GT(released, 1000U) << "the histories are too short to mean anything";
}

TEST(RandomHistory, Of708MembersIsABarrier) {
  std::uint64_t released = 0;
  for (unsigned seed = 0; seed < 5 && !::testing::Test::HasFailure(); ++seed) {
    released += play_at_random(GBA_MAX_MEMBERS, 40000, seed);
  }
  EXPECT_GT(released, 10U) << "the histories are too short to mean anything";
}

/// Nothing that ordinary ports write, in any order, makes the model lose count of itself.
TEST(RandomHistory, OfAnyRegisterWritesKeepsTheModelWhole) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    Device device(4);
    for (unsigned count = 0; count < 3000; ++count) {
      const auto port = static_cast<unsigned>(random() % 5);
      const auto group = static_cast<unsigned>(random() % 3);
      switch (random() % 6) {
        case 0:
          device.command(port, static_cast<unsigned>(random() % 7), group, static_cast<unsigned>(random() % 4),
                         device.keys[group]);
          break;
        case 1:
          device.alloc_maybe(port);
          break;
        case 2:
          device.group_write(port, group, GBA_GROUP_CONTROL, random() % 16);
          break;
        case 3:
          device.configure(port, group, static_cast<unsigned>(random() % 4));
          break;
        case 4:
          device.model.arrive(port, group, Device::word(static_cast<unsigned>(random() % 4), random() % 4), count);
          break;
        default:
          device.model.disconnect(port);
          device.model.connect(port);
          break;
      }
      for (unsigned id = 0; id < 3; ++id) {
        const auto arrived = device.group_read(id, GBA_GROUP_ARRIVED_MASK);
        ASSERT_EQ(device.group_read(id, GBA_GROUP_ARRIVAL_COUNT, 4), static_cast<unsigned>(std::popcount(arrived)));
        ASSERT_EQ(arrived & ~device.group_read(id, GBA_GROUP_MEMBER_MASK), 0U);
      }
    }
    for (unsigned port = 0; port < 5; ++port) {
      device.model.disconnect(port);
    }
    EXPECT_TRUE(device.effects.members.empty()) << "a port that is gone is a member of nothing";
    device.model.connect(0);
    for (unsigned group = 0; group < GBA_MAX_GROUPS; ++group) {
      EXPECT_EQ(device.alloc(0), group) << "a group was lost";
    }
  }
}

}  // namespace
