// SPDX-License-Identifier: Apache-2.0
// Compares the model with its specification in random histories of groups of any size, and checks its consistency after
// any sequence of register writes.
#include <algorithm>
#include <bit>
#include <numeric>
#include <random>

#include "tests/support/sanitized.hpp"
#include "tests/support/soak.hpp"
#include "tests/unit/fake_device/played_group.hpp"

namespace {

using fake_device_test::Device;
using fake_device_test::PlayedGroup;
using fake_device_test::Setup;
using fake_device_test::Specification;
using fake_device_test::Step;

/// Members that arrive in any order, repeat arrivals, and ask for interrupts or not. If requested, one incident occurs,
/// such as a member that leaves or a reset by the owner.
class RandomHistory {
 public:
  RandomHistory(Device& device, const Setup& setup, unsigned seed)
      : random_(seed), setup_(setup), group_(device, setup), spec_(group_.specification()), order_(setup.members) {
    std::iota(order_.begin(), order_.end(), 0U);
  }

  /// Returns how many rounds were released.
  std::uint64_t play(std::uint64_t rounds, bool with_incident) {
    const auto incident_at = with_incident ? one_of(rounds * setup_.members) : rounds * setup_.members;
    std::uint64_t arrivals = 0;
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      std::shuffle(order_.begin(), order_.end(), random_);
      for (const auto member : order_) {
        if (arrivals++ == incident_at) {
          incident();
        }
        arrive(member, round);
      }
      group_.check();
    }
    return spec_.released - setup_.start;
  }

 private:
  std::uint64_t one_of(std::uint64_t count) { return random_() % count; }
  bool one_in(unsigned count) { return one_of(count) == 0; }
  unsigned any_member() { return static_cast<unsigned>(one_of(setup_.members)); }

  void arrive(unsigned member, std::uint64_t round) {
    if (one_in(16)) {  // an arrival of any member, stale or at the open round
      group_.step({Step::kArrive, any_member(), 1 + one_of(spec_.released - setup_.start + 1), one_in(2)});
    }
    group_.step({Step::kArrive, member, round, one_in(2)});
    if (one_in(16)) {
      group_.step({Step::kArrive, member, round, one_in(2)});
    }
  }

  void incident() {
    switch (one_of(7)) {
      case 0:
        group_.step({Step::kReset});
        break;
      case 1:
        group_.step({Step::kLeave, any_member()});
        break;
      case 2:
        group_.step({Step::kDisconnect, any_member()});
        break;
      case 3:
        group_.step({Step::kFree});
        break;
      case 4:
        if (spec_.arrived.any()) {
          group_.step({Step::kExpire});
        }
        break;
      case 5:  // one round too early
        group_.step({Step::kArrive, any_member(), spec_.released - setup_.start + 2, one_in(2)});
        break;
      default:
        pause();
        break;
    }
    group_.check();
  }
  /// Disables and enables the group, which forgets the arrivals of the open round, and repeats them.
  void pause() {
    const auto arrived = spec_.arrived;
    group_.step({Step::kDisable});
    group_.check();
    group_.step({Step::kEnable});
    spec_.for_each(arrived, [&](unsigned member) {
      group_.step({Step::kArrive, member, spec_.released - setup_.start + 1, one_in(2)});
    });
  }

  std::mt19937_64 random_;
  const Setup setup_;
  PlayedGroup group_;
  const Specification& spec_;
  std::vector<unsigned> order_;
};

/// Any first sequence, half of them just before the 32 bits of an arrival wrap; any owner, a member or not.
Setup random_setup(unsigned members, unsigned seed) {
  std::mt19937_64 random(seed);
  const std::uint64_t near_wrap = std::uint64_t{random() % 1000} << 32 | 0xfffffffe;
  return {.members = members,
          .start = seed % 2 == 0 ? near_wrap : random() >> 9,
          .owner = static_cast<unsigned>(random() % (members + 1)),
          .interrupts = seed % 16 != 0};
}

constexpr int kInCi = test_support::kEmulated ? 50 : test_support::kSanitized ? 500 : 3000;

TEST(RandomHistories, OfSmallGroupsAreBarriers) {
  const auto histories = static_cast<unsigned>(test_support::repeats(kInCi, 100000));
  for (unsigned seed = 0; seed < histories && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const unsigned members = 1 + seed % 8;
    Device device(members + 1);
    const auto released = RandomHistory(device, random_setup(members, seed), seed).play(50, seed % 4 == 3);
    EXPECT_TRUE(released == 50 || seed % 4 == 3) << released << " rounds were released";
  }
}

TEST(RandomHistories, Of708MembersAreBarriers) {
  const auto histories = static_cast<unsigned>(test_support::repeats(kInCi, 100000));
  Device device(GBA_MAX_MEMBERS + 1);
  for (unsigned seed = 0; seed < histories && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::uint64_t rounds = 1 + seed % 3;
    const auto released = RandomHistory(device, random_setup(GBA_MAX_MEMBERS, seed), seed).play(rounds, seed % 4 == 3);
    EXPECT_TRUE(released == rounds || seed % 4 == 3) << released << " rounds were released";
  }
}

/// Register writes of ordinary ports, in any order, leave the model consistent.
TEST(AnyRegisterWrites, KeepTheModelConsistent) {
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
    EXPECT_TRUE(device.effects.members.empty()) << "a disconnected port is not a member of any group";
    for (unsigned group = 0; group < GBA_MAX_GROUPS; ++group) {
      EXPECT_EQ(device.alloc(device.model.privileged_port()), group) << "a group was lost";
    }
  }
}

}  // namespace
