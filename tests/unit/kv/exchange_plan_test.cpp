// SPDX-License-Identifier: Apache-2.0
// shmemx_exchange_plan: which member of an exchange shall have which blocks.
#include <gmock/gmock.h>
#include <shmemx.h>
#include <shmemx_exchange.h>

#include <cerrno>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// {from, to, load, key}
using Row = std::tuple<std::uint64_t, std::uint64_t, std::size_t, std::size_t>;

class ExchangePlan : public testing::Test {
 protected:
  void member(std::uint64_t id, std::uint32_t weight = 1, std::uint64_t room = 1000) {
    members_.push_back({.member = id, .room = room, .weight = weight, .reserved = 0});
  }
  void load(std::uint64_t member, std::uint64_t load, const std::vector<std::string>& keys) {
    auto& names = keys_.emplace_back();
    for (const auto& key : keys) {
      const std::string& kept = texts_.emplace_back(key);
      names.push_back({kept.data(), kept.size()});
    }
    loads_.push_back({.member = member, .load = load, .keys = names.data(), .count = names.size(), .to = 0});
  }
  /// What the call returns; its moves are in moves_.
  int plan(double tolerance = 0) {
    std::vector<shmemx_exchange_move_t> made(1000);
    const int count = shmemx_exchange_plan(members_.data(), members_.size(), loads_.data(), loads_.size(), tolerance,
                                           made.data(), made.size());
    moves_.clear();
    for (int i = 0; i < count; ++i) {
      const auto& move = made[static_cast<std::size_t>(i)];
      moves_.emplace_back(move.from, move.to, move.load, move.key);
    }
    return count;
  }
  void expect_refused(const std::string& reason, double tolerance = 0) {
    EXPECT_EQ(plan(tolerance), -EINVAL);
    EXPECT_THAT(shmemx_error_text(), AllOf(HasSubstr("shmemx_exchange_plan: "), HasSubstr(reason)));
  }
  /// The load that each member has afterwards.
  std::map<std::uint64_t, std::uint64_t> loads_after() const {
    std::map<std::uint64_t, std::uint64_t> sums;
    for (const auto& one : members_) {
      sums[one.member] = 0;
    }
    for (const auto& one : loads_) {
      sums[one.to] += one.load;
    }
    return sums;
  }
  /// Every load has all its keys where it shall be, if they were where it was and the moves are carried out, and no
  /// block moves to a member that has it.
  void expect_complete() {
    std::map<std::uint64_t, std::set<std::string>> held;
    const auto text = [](const shmemx_exchange_key_t& key) {
      return std::string(static_cast<const char*>(key.data), key.bytes);
    };
    for (const auto& one : loads_) {
      for (std::size_t i = 0; i < one.count; ++i) {
        held[one.member].insert(text(one.keys[i]));
      }
    }
    const auto before = held;
    for (const auto& [from, to, number, key] : moves_) {
      const std::string name = text(loads_[number].keys[key]);
      EXPECT_EQ(from, loads_[number].member);
      EXPECT_EQ(to, loads_[number].to);
      EXPECT_TRUE(before.at(from).contains(name));
      EXPECT_TRUE(held[to].insert(name).second) << name << " moves to a member that has it";
    }
    for (const auto& one : loads_) {
      for (std::size_t i = 0; i < one.count; ++i) {
        EXPECT_TRUE(held[one.to].contains(text(one.keys[i])));
      }
    }
  }

  std::vector<shmemx_exchange_share_t> members_;
  std::vector<shmemx_exchange_load_t> loads_;
  std::deque<std::vector<shmemx_exchange_key_t>> keys_;
  std::deque<std::string> texts_;
  std::vector<Row> moves_;
};

TEST_F(ExchangePlan, BalancesWholeLoads) {
  for (const std::uint64_t id : {70, 30, 50}) {
    member(id);
  }
  load(70, 40, {"a0", "a1"});
  load(70, 30, {"b0"});
  load(70, 20, {"c0", "c1"});
  // The mean is 30: 40 is too long for a gap, 30 fits one, and 20 the other.
  EXPECT_EQ(plan(), 3) << shmemx_error_text();
  EXPECT_THAT(moves_, ElementsAre(Row{70, 30, 1, 0}, Row{70, 50, 2, 0}, Row{70, 50, 2, 1}));
  EXPECT_EQ(loads_[0].to, 70U);
  EXPECT_EQ(loads_[1].to, 30U);
  EXPECT_EQ(loads_[2].to, 50U);
}

TEST_F(ExchangePlan, GivesMembersTheirPart) {
  member(1, 100);
  member(2, 300);
  for (int i = 0; i < 8; ++i) {
    load(1, 10, {"key" + std::to_string(i)});
  }
  EXPECT_EQ(plan(), 6);
  EXPECT_THAT(loads_after(), ElementsAre(std::pair(1, 20), std::pair(2, 60)));
  expect_complete();
}

TEST_F(ExchangePlan, AMemberWithoutWeightGivesAwayWhatItHas) {
  member(1, 0);
  member(2, 1);
  member(3, 1);
  for (int i = 0; i < 4; ++i) {
    load(1, 10, {"key" + std::to_string(i)});
  }
  load(1, 0, {"pinned"});
  EXPECT_EQ(plan(), 4);
  EXPECT_THAT(loads_after(), ElementsAre(std::pair(1, 0), std::pair(2, 20), std::pair(3, 20)));
  EXPECT_EQ(loads_[4].to, 1U) << "a load of 0 stays";
}

TEST_F(ExchangePlan, TakesNoMoreBlocksThanThereIsRoomFor) {
  member(1);
  member(2, 1, 1);
  load(1, 10, {"a0", "a1"});
  load(1, 10, {"b0", "b1"});
  EXPECT_EQ(plan(), 0);
  members_[1].room = 2;
  EXPECT_EQ(plan(), 2);
  expect_complete();
}

TEST_F(ExchangePlan, SendsNothingThatTheReceiverHasOrGetsAnyway) {
  member(1);
  member(2);
  load(1, 30, {"prefix", "common", "a"});
  load(1, 30, {"prefix", "common", "b"});
  load(1, 60, {"c"});
  load(2, 0, {"prefix"});
  EXPECT_EQ(plan(), 1) << "the one of 60";
  EXPECT_THAT(moves_, ElementsAre(Row{1, 2, 2, 0}));
  loads_[2].load = 0;
  load(1, 30, {"prefix", "common", "d"});
  load(1, 30, {"prefix", "common", "e"});
  EXPECT_EQ(plan(), 3) << "what they share is sent once, and the prefix not at all";
  EXPECT_THAT(loads_after(), ElementsAre(std::pair(1, 60), std::pair(2, 60)));
  expect_complete();
}

TEST_F(ExchangePlan, ToleranceLeavesMembersNearTheirPartAlone) {
  member(1);
  member(2);
  load(1, 10, {"a"});
  load(1, 1, {"b"});
  load(2, 9, {"c"});
  EXPECT_EQ(plan(0.2), 0);
  // Now both are far from it.
  load(1, 10, {"d"});
  load(1, 10, {"e"});
  EXPECT_EQ(plan(0.2), 1) << "one of 10, after which the others are within it";
  EXPECT_EQ(plan(0), 2);
  EXPECT_THAT(loads_after(), ElementsAre(std::pair(1, 20), std::pair(2, 20)));
}

TEST_F(ExchangePlan, LoadsMayBeBytes) {
  member(1);
  member(2);
  const std::uint64_t most = std::uint64_t{1} << 40;
  for (int i = 0; i < 4; ++i) {
    load(1, most, {"key" + std::to_string(i)});
  }
  EXPECT_EQ(plan(), 2) << shmemx_error_text();
  EXPECT_EQ(loads_after()[2], 2 * most);
}

TEST_F(ExchangePlan, WritesWhatThereIsRoomFor) {
  member(1);
  member(2);
  load(1, 10, {"a"});
  load(1, 10, {"b0", "b1"});
  shmemx_exchange_move_t moves[2] = {{0, 0, 0, 0}, {7, 7, 7, 7}};
  EXPECT_EQ(shmemx_exchange_plan(members_.data(), 2, loads_.data(), 2, 0, nullptr, 0), 1);
  EXPECT_EQ(shmemx_exchange_plan(members_.data(), 2, loads_.data(), 2, 0, moves, 2), 1);
  EXPECT_EQ(moves[0].from, 1U);
  EXPECT_EQ(moves[1].from, 7U);
  loads_.clear();
  EXPECT_EQ(plan(), 0) << "no loads";
}

TEST_F(ExchangePlan, RefusesWhatMakesNoSense) {
  member(1);
  load(1, 10, {"a"});
  EXPECT_EQ(shmemx_exchange_plan(nullptr, 1, loads_.data(), 1, 0, nullptr, 0), -EINVAL);
  EXPECT_EQ(shmemx_exchange_plan(members_.data(), 1, nullptr, 1, 0, nullptr, 0), -EINVAL);
  EXPECT_EQ(shmemx_exchange_plan(members_.data(), 1, loads_.data(), 1, 0, nullptr, 1), -EINVAL);
  expect_refused("a tolerance of 1.5", 1.5);
  members_[0].weight = 0;
  expect_refused("no member has a weight that is not 0");
  members_[0].weight = 1001;
  expect_refused("member 0 has the weight 1001");
  members_[0].weight = 1;
  members_[0].reserved = 1;
  expect_refused("reserved of member 0 is 1");
  members_[0].reserved = 0;
  member(1);
  expect_refused("members 0 and 1 are both 1");
  members_[1].member = 2;
  loads_[0].member = 3;
  expect_refused("load 0 is of 3, which is not one of the 2 members");
  loads_[0].member = 1;
  load(1, 5, {});
  expect_refused("load 1 has no blocks");
  loads_.pop_back();
  load(1, 5, {std::string(129, 'k')});
  expect_refused("key 0 of load 1 has 129 bytes");
  loads_.pop_back();
  load(2, std::uint64_t{1} << 60, {"b"});
  expect_refused("load 1 is 1152921504606846976, with 1 block; all loads are more than can be counted");
  loads_[1].load = ~std::uint64_t{0};
  expect_refused("more than can be counted");
  loads_[1].count = std::size_t{1} << 31;
  expect_refused("more than 2^30 keys");
  loads_[1].count = 1;
  loads_[1].keys = nullptr;
  expect_refused("keys of load 1 is NULL");
  members_.clear();
  EXPECT_EQ(plan(), -EINVAL);
}

TEST_F(ExchangePlan, TakesNoMemberPastItsPart) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
    members_.clear();
    loads_.clear();
    const std::uint64_t members = 2 + below(5);
    for (std::uint64_t i = 0; i < members; ++i) {
      member(100 + i, i == 0 ? 1 + below(4) : below(4), below(40));
    }
    for (std::uint32_t i = 0, count = below(40); i < count; ++i) {
      std::vector<std::string> keys{"prefix" + std::to_string(below(3))};
      for (std::uint32_t k = 0, more = below(5); k < more; ++k) {
        keys.push_back(std::to_string(i) + "." + std::to_string(k));
      }
      load(100 + below(static_cast<std::uint32_t>(members)), below(50), keys);
    }
    ASSERT_GE(plan(), 0) << shmemx_error_text();
    expect_complete();
    std::map<std::uint64_t, std::uint64_t> before;
    std::map<std::uint64_t, std::uint64_t> taken;
    std::uint64_t all = 0;
    std::uint64_t weights = 0;
    for (const auto& one : loads_) {
      before[one.member] += one.load;
      all += one.load;
    }
    for (const auto& move : moves_) {
      ++taken[std::get<1>(move)];
    }
    for (const auto& one : members_) {
      weights += one.weight;
    }
    const auto after = loads_after();
    for (const auto& one : members_) {
      const std::uint64_t part = one.weight * all;  // times the weights
      const std::uint64_t now = after.at(one.member) * weights;
      EXPECT_LE(now, std::max(part, before[one.member] * weights)) << "seed " << seed;
      EXPECT_GE(now, std::min(part, before[one.member] * weights)) << "seed " << seed;
      EXPECT_LE(taken[one.member], one.room) << "seed " << seed;
    }
  }
}

}  // namespace
