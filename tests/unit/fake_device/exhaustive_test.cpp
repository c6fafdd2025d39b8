// SPDX-License-Identifier: Apache-2.0
// Every state that a small group and its members can reach, and every step that is possible in it.
#include <algorithm>
#include <deque>
#include <set>

#include "tests/unit/fake_device/played_group.hpp"

namespace {

using fake_device_test::Device;
using fake_device_test::PlayedGroup;
using fake_device_test::Setup;
using fake_device_test::Specification;
using fake_device_test::Step;

constexpr std::uint64_t kRounds = 3;

/// The visible state of the group, and the last barrier at which each member has arrived.
using State = std::vector<std::uint64_t>;

State state_of(const Specification& spec, const std::vector<std::uint64_t>& at) {
  State state{spec.released, spec.joined.to_ullong(), spec.arrived.to_ullong(), spec.asked.to_ullong(), spec.code,
              spec.culprit,  spec.enabled ? 1U : 0U,  spec.orphaned ? 1U : 0U,  spec.freed ? 1U : 0U};
  state.insert(state.end(), spec.flags.begin(), spec.flags.end());
  state.insert(state.end(), at.begin(), at.end());
  return state;
}

/// The steps that are possible next. A member waits for its round, may repeat any earlier arrival, and may arrive one
/// round too early.
class Possible {
 public:
  Possible(const Specification& spec, const std::vector<std::uint64_t>& at) : spec_(spec), at_(at) {
    if (spec.freed) {
      return;
    }
    for (unsigned member = 0; member < spec.setup.members; ++member) {
      of_member(member);
    }
    of_owner();
    if (spec.code == 0 && spec.arrived.any()) {
      steps_.push_back({Step::kExpire});
    }
  }
  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }

 private:
  void of_member(unsigned member) {
    const auto released = spec_.released - spec_.setup.start;
    const bool waits = at_[member] > released;
    if (spec_.joined[member]) {
      const auto newest = waits || at_[member] == kRounds ? at_[member] : at_[member] + 1;
      for (std::uint64_t sequence = 1; sequence <= newest; ++sequence) {
        arrive(member, sequence);
      }
      arrive(member, released + 2);
      steps_.push_back({Step::kLeave, member});
      steps_.push_back({Step::kDisconnect, member});
    } else {
      arrive(member, released + 1);
    }
  }
  void of_owner() {
    const unsigned owner = spec_.setup.owner;
    if (spec_.orphaned) {
      steps_.push_back({Step::kReclaim});
      return;
    }
    steps_.push_back({Step::kReset});
    steps_.push_back({Step::kFree});
    if (owner == spec_.setup.members || !spec_.joined[owner]) {
      steps_.push_back({Step::kDisconnect, owner});
    }
    if (spec_.enabled) {
      steps_.push_back({Step::kDisable});
    } else if (spec_.code == 0) {
      steps_.push_back({Step::kEnable});
    }
  }
  void arrive(unsigned member, std::uint64_t sequence) {
    steps_.push_back({Step::kArrive, member, sequence, false});
    steps_.push_back({Step::kArrive, member, sequence, true});
  }

  const Specification& spec_;
  const std::vector<std::uint64_t>& at_;
  std::vector<Step> steps_;
};

struct Size {
  std::size_t states = 0;
  std::size_t steps = 0;
  bool operator==(const Size&) const = default;
};
void PrintTo(const Size& size, std::ostream* out) {
  *out << size.states << " states, " << size.steps << " steps";
}

/// Breadth first, so that each state is reached by a shortest history. After each step the group is also played to its
/// end, which shows differences in the hidden state of the model.
class Exhaustive {
 public:
  static constexpr unsigned kRoundsToFinish = 2;

  explicit Exhaustive(const Setup& setup) : setup_(setup), device_(setup.members + 1) {}

  Size run() {
    const Specification spec(setup_);
    const std::vector<std::uint64_t> at(setup_.members, 0);
    found(state_of(spec, at), spec, at, {});
    Size size;
    while (!left_.empty() && !::testing::Test::HasFailure()) {
      const Found now = std::move(left_.front());
      left_.pop_front();
      const Possible possible(now.spec, now.at);
      for (const auto& step : possible.steps()) {
        ++size.steps;
        take(now, step);
      }
    }
    size.states = known_.size();
    return size;
  }

 private:
  struct Found {
    Specification spec;
    std::vector<std::uint64_t> at;
    std::vector<Step> history;
  };

  void found(const State& state, const Specification& spec, const std::vector<std::uint64_t>& at,
             const std::vector<Step>& history) {
    if (known_.insert(state).second) {
      left_.push_back({spec, at, history});
    }
  }

  void take(const Found& from, const Step& step) {
    PlayedGroup group(device_, setup_);
    for (const auto& earlier : from.history) {
      group.step(earlier);
    }
    group.step(step);
    group.check();
    auto at = from.at;
    if (step.action == Step::kArrive && from.spec.joined[step.who] &&
        setup_.start + step.sequence <= from.spec.released + 1) {
      at[step.who] = std::max(at[step.who], step.sequence);
    }
    expect_a_barrier(group.specification(), at);
    auto history = from.history;
    history.push_back(step);
    found(state_of(group.specification(), at), group.specification(), at, history);
    finish(group);
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << "after " << ::testing::PrintToString(history);
    }
  }

  /// The definition of a barrier: a flag shows k or more only after all members have arrived at k.
  void expect_a_barrier(const Specification& spec, const std::vector<std::uint64_t>& at) const {
    const auto least = setup_.start + *std::min_element(at.begin(), at.end());
    for (const auto flag : spec.flags) {
      EXPECT_LE(GBA_FIELD_GET(GBA_FLAG_SEQUENCE, flag), least);
    }
  }

  void finish(PlayedGroup& group) const {
    const auto& spec = group.specification();
    if (!spec.freed && spec.code == 0 && !spec.enabled) {
      group.step({Step::kEnable});
    }
    for (unsigned round = 0; round < kRoundsToFinish; ++round) {
      const auto next = spec.released + 1 - setup_.start;
      for (unsigned member = 0; member < setup_.members && !spec.freed; ++member) {
        group.step({Step::kArrive, member, next});
      }
    }
    if (!spec.freed) {
      group.step({spec.orphaned ? Step::kReclaim : Step::kFree});
    }
    group.check();
  }

  const Setup setup_;
  Device device_;
  std::set<State> known_;
  std::deque<Found> left_;
};

constexpr std::uint64_t kNear32Bits = 0xfffffffeULL;
constexpr std::uint64_t kLastStart = GBA_SEQUENCE_MAX;

struct Search {
  Setup setup;
  Size size;
};
void PrintTo(const Search& search, std::ostream* out) {
  *out << search.setup.members << " members from " << search.setup.start << ", owned by " << search.setup.owner
       << (search.setup.armed ? "" : ", not armed") << (search.setup.interrupts ? "" : ", without interrupts");
}

class EveryStep : public ::testing::TestWithParam<Search> {};

TEST_P(EveryStep, KeepsASmallGroupABarrier) {
  EXPECT_EQ(Exhaustive(GetParam().setup).run(), GetParam().size) << "the search covered fewer or more steps";
}

// The numbers do not depend on the first sequence or on CONTROL.
[[maybe_unused]] constexpr Size kThreeMembers{16101, 190811};
[[maybe_unused]] constexpr Size kThreeMembersAndAnOwner{20215, 257883};

// Under a sanitizer or in an emulator a search takes minutes. One is enough there: it looks for errors of memory and
// threads, or for what the other processor does differently, not for errors of barriers. In an emulator the searches of
// two members are long enough.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
INSTANTIATE_TEST_SUITE_P(OfThreeMembersAndThreeRounds, EveryStep,
                         ::testing::Values(Search{{.members = 3, .start = kLastStart, .owner = 2, .armed = false},
                                                  kThreeMembers}));
#elif !defined(GBA_TEST_EMULATED)
INSTANTIATE_TEST_SUITE_P(
    OfThreeMembersAndThreeRounds, EveryStep,
    ::testing::Values(Search{{.members = 3, .start = 0, .owner = 0}, kThreeMembers},
                      Search{{.members = 3, .start = 0x7ffffffe, .owner = 1, .interrupts = false}, kThreeMembers},
                      Search{{.members = 3, .start = kNear32Bits, .owner = 3}, kThreeMembersAndAnOwner},
                      Search{{.members = 3, .start = kLastStart, .owner = 2, .armed = false}, kThreeMembers}));
#endif
INSTANTIATE_TEST_SUITE_P(OfTwoMembersAndThreeRounds, EveryStep,
                         ::testing::Values(Search{{.members = 2, .start = 0, .owner = 0}, {1608, 12755}},
                                           Search{{.members = 2, .start = kNear32Bits, .owner = 2}, {2058, 17553}}));
INSTANTIATE_TEST_SUITE_P(OfOneMemberAndThreeRounds, EveryStep,
                         ::testing::Values(Search{{.members = 1, .start = kLastStart, .owner = 0}, {119, 526}},
                                           Search{{.members = 1, .start = 0, .owner = 1}, {161, 749}}));

}  // namespace
