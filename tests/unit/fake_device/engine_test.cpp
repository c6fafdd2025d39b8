// SPDX-License-Identifier: Apache-2.0
// The engine turns doorbells in shared memory into flags in shared memory; no socket is involved.
#include "fake_device/engine.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <map>
#include <memory>
#include <thread>

#include "tests/support/soak.hpp"

namespace {

using fake_device::Engine;
using fake_device::GuardedWord;
using fake_device::SharedPages;

/// A link to a client whose memory is in this process.
class LocalLink final : public fake_device::PortLink {
 public:
  [[nodiscard]] const SharedPages& doorbells() const override { return doorbells_; }
  [[nodiscard]] const SharedPages& flags() const override { return flags_; }
  std::optional<GuardedWord> resolve(std::uint64_t iova) override {
    ++resolved;
    const auto found = memory.find(iova);
    return found == memory.end() ? std::nullopt : std::optional(GuardedWord{.word = &found->second});
  }
  bool send_store(unsigned group, std::uint64_t iova, std::uint64_t word) override {
    sent.push_back({group, iova, word});
    return takes_messages;
  }
  void raise(unsigned vector) override { raised.push_back(vector); }
  void memory_lost() override { lost = true; }
  void removed() override { gone = true; }

  std::map<std::uint64_t, std::atomic<std::uint64_t>> memory;
  std::vector<std::array<std::uint64_t, 3>> sent;
  std::vector<unsigned> raised;
  unsigned resolved = 0;
  bool takes_messages = false;
  bool lost = false;
  bool gone = false;

 private:
  SharedPages doorbells_ = *SharedPages::create("doorbells", GBA_BAR2_SIZE);
  SharedPages flags_ = *SharedPages::create("flags", GBA_BAR4_SIZE);
};

class EngineTest : public ::testing::Test {
 protected:
  EngineTest() : engine_(fake_device::gba_profile(), 4) {
    for (unsigned port = 0; port < 4; ++port) {
      engine_.attach(port, links_[port]);
    }
  }
  ~EngineTest() override {
    for (unsigned port = 0; port < 4; ++port) {
      engine_.detach(port, 0);
    }
  }

  void write(unsigned port, std::uint64_t offset, std::uint64_t value, unsigned size = 8) {
    engine_.write(port, offset, size, value, 0);
  }
  unsigned command(unsigned port, std::uint64_t opcode, unsigned group, unsigned member) {
    write(port, GBA_REG_CMD,
          GBA_FIELD_PUT(GBA_CMD_OPCODE, opcode) | GBA_FIELD_PUT(GBA_CMD_GROUP, group) |
              GBA_FIELD_PUT(GBA_CMD_MEMBER, member) | GBA_FIELD_PUT(GBA_CMD_KEY, key_));
    return static_cast<unsigned>(GBA_FIELD_GET(GBA_CMD_STATUS_ERROR, engine_.read(port, GBA_REG_CMD_STATUS, 8, 0)));
  }
  /// Makes an enabled group of port 0 with ports 0..members-1 joined.
  unsigned barrier(unsigned members) {
    const unsigned group = closed_group(members);
    open(group);
    return group;
  }
  void open(unsigned group) {
    write(0, GBA_GROUP_BASE(group) + GBA_GROUP_CONTROL, GBA_CONTROL_ENABLE | GBA_CONTROL_ARM | GBA_CONTROL_IRQ_EN);
  }
  /// The same, but not enabled.
  unsigned closed_group(unsigned members) {
    command(0, GBA_CMD_ALLOC, 0, 0);
    const auto result = engine_.read(0, GBA_REG_CMD_RESULT, 8, 0);
    const auto group = static_cast<unsigned>(GBA_FIELD_GET(GBA_CMD_RESULT_GROUP, result));
    key_ = static_cast<std::uint32_t>(GBA_FIELD_GET(GBA_CMD_RESULT_KEY, result));
    write(0, GBA_GROUP_BASE(group) + GBA_GROUP_MEMBER_COUNT, members, 4);
    write(0, GBA_GROUP_BASE(group) + GBA_GROUP_MEMBER_MASK, (1U << members) - 1);
    for (unsigned member = 0; member < members; ++member) {
      EXPECT_EQ(command(member, GBA_CMD_JOIN, group, member), unsigned{GBA_CMD_OK});
    }
    return group;
  }
  std::atomic<std::uint64_t>& slot(unsigned port, unsigned group) {
    return *links_[port].doorbells().at<std::uint64_t>(GBA_DOORBELL_SLOT(group));
  }
  void ring(unsigned port, unsigned group, std::uint64_t sequence) {
    slot(port, group).store(word(port, sequence), std::memory_order_release);
  }
  static std::uint64_t word(unsigned member, std::uint64_t sequence) {
    return GBA_FIELD_PUT(GBA_ARRIVAL_SEQUENCE, sequence) | GBA_FIELD_PUT(GBA_ARRIVAL_MEMBER, member) |
           GBA_FIELD_PUT(GBA_ARRIVAL_VALID, 1);
  }
  std::uint64_t bar_flag(unsigned port, unsigned group) {
    return links_[port].flags().at<std::uint64_t>(std::size_t{group} * GBA_FLAG_STRIDE)->load();
  }
  std::uint32_t wakeup(unsigned port) {
    return links_[port].doorbells().at<std::uint32_t>(GBA_DOORBELL_WAKEUP)->load();
  }

  std::array<LocalLink, 4> links_;
  Engine engine_;
  std::uint32_t key_ = 0;
};

TEST_F(EngineTest, CarriesDoorbellsIntoReleases) {
  const unsigned group = barrier(2);
  EXPECT_FALSE(engine_.scan(0));
  ring(0, group, 1);
  EXPECT_TRUE(engine_.scan(0));
  EXPECT_EQ(slot(0, group).load(), 0U) << "the slot is consumed";
  EXPECT_EQ(bar_flag(0, group), 0U);
  ring(1, group, 1);
  EXPECT_TRUE(engine_.scan(0));
  EXPECT_EQ(bar_flag(0, group), 1U);
  EXPECT_EQ(bar_flag(1, group), 1U);
}

TEST_F(EngineTest, StoresToTheClientsOwnMemoryAndResolvesItOnce) {
  const unsigned group = barrier(1);
  links_[0].memory[0x1000] = 0;
  write(0, GBA_GROUP_BASE(group) + GBA_GROUP_RELEASE_ADDR, 0x1000);
  for (std::uint64_t k = 1; k <= 5; ++k) {
    ring(0, group, k);
    engine_.scan(0);
    EXPECT_EQ(links_[0].memory[0x1000].load(), k);
  }
  EXPECT_EQ(links_[0].resolved, 1U);
  links_[0].memory[0x2000] = 0;
  write(0, GBA_GROUP_BASE(group) + GBA_GROUP_RELEASE_ADDR, 0x2000);
  ring(0, group, 6);
  engine_.scan(0);
  EXPECT_EQ(links_[0].memory[0x2000].load(), 6U) << "a new address is used at once";
  links_[0].memory.erase(0x2000);
  engine_.forget_memory(0);
  ring(0, group, 7);
  engine_.scan(0);
  EXPECT_EQ(engine_.read(0, GBA_REG_FAULT, 8, 0), GBA_FAULT_BIT(GBA_FAULT_DMA));
}

TEST_F(EngineTest, SendsStoresToMemoryWithoutAFileByMessage) {
  const unsigned group = barrier(1);
  links_[0].takes_messages = true;
  write(0, GBA_GROUP_BASE(group) + GBA_GROUP_RELEASE_ADDR, 0x3000);
  ring(0, group, 1);
  engine_.scan(0);
  EXPECT_THAT(links_[0].sent, ::testing::ElementsAre(std::array<std::uint64_t, 3>{group, 0x3000, 1}));
  EXPECT_EQ(engine_.read(0, GBA_REG_FAULT, 8, 0), 0U);
}

TEST_F(EngineTest, SeesADoorbellBeforeTheRegisterAccessThatFollowsIt) {
  const unsigned group = barrier(2);
  ring(1, group, 1);
  EXPECT_EQ(engine_.read(1, GBA_GROUP_BASE(group) + GBA_GROUP_ARRIVAL_COUNT, 4, 0), 1U);
  ring(0, group, 1);
  command(0, GBA_CMD_LEAVE, group, 0);
  EXPECT_EQ(bar_flag(1, group) & GBA_FLAG_SEQUENCE_MASK, 1U) << "it arrived before it left";
}

TEST_F(EngineTest, CountsDoorbellsRungBeforeTheClientDisconnected) {
  const unsigned group = barrier(2);
  ring(0, group, 1);
  ring(1, group, 1);
  engine_.detach(1, 0);
  EXPECT_EQ(bar_flag(0, group) & GBA_FLAG_SEQUENCE_MASK, 1U);
  engine_.attach(1, links_[1]);
}

TEST_F(EngineTest, JoinClearsSlotAndFlag) {
  barrier(1);
  slot(1, 1).store(word(1, 1));
  links_[1].flags().at<std::uint64_t>(GBA_FLAG_STRIDE)->store(99);
  const unsigned group = barrier(2);
  ASSERT_EQ(group, 1U);
  EXPECT_EQ(bar_flag(1, group), 0U);
  EXPECT_FALSE(engine_.scan(0));
}

TEST_F(EngineTest, ScansNoSlotWithoutMembershipButSweepsIt) {
  ring(2, 9, 1);
  EXPECT_FALSE(engine_.scan(0));
  engine_.sweep(2, 0);
  EXPECT_EQ(engine_.read(2, GBA_REG_FAULT, 8, 0), GBA_FAULT_BIT(GBA_FAULT_NOT_JOINED));
  EXPECT_EQ(slot(2, 9).load(), 0U);
}

TEST_F(EngineTest, ScansNoSlotOfAGroupThatIsNotEnabled) {
  const unsigned group = closed_group(2);
  EXPECT_EQ(engine_.joined_ports(), 0U) << "no member of an enabled group";
  ring(1, group, 1);
  EXPECT_FALSE(engine_.scan(0));
  EXPECT_EQ(engine_.read(1, GBA_REG_FAULT, 8, 0), GBA_FAULT_BIT(GBA_FAULT_NOT_ENABLED)) << "at the next access";
  open(group);
  EXPECT_EQ(engine_.joined_ports(), 2U);
  ring(0, group, 1);
  ring(1, group, 1);
  EXPECT_TRUE(engine_.scan(0));
  EXPECT_EQ(bar_flag(0, group), 1U);
  command(0, GBA_CMD_FREE, group, 0);
  EXPECT_EQ(engine_.joined_ports(), 0U);
}

TEST_F(EngineTest, CountsNoArrivalThatCameBeforeTheGroupWasEnabled) {
  const unsigned group = closed_group(2);
  ring(1, group, 1);
  open(group);
  ring(0, group, 1);
  engine_.scan(0);
  EXPECT_EQ(bar_flag(0, group), 0U);
  EXPECT_EQ(engine_.read(1, GBA_REG_FAULT, 8, 0), GBA_FAULT_BIT(GBA_FAULT_NOT_ENABLED));
}

TEST_F(EngineTest, AcceptsAMemberThatJoinsAnEnabledGroup) {
  const unsigned group = closed_group(1);
  write(0, GBA_GROUP_BASE(group) + GBA_GROUP_MEMBER_COUNT, 2, 4);
  write(0, GBA_GROUP_BASE(group) + GBA_GROUP_MEMBER_MASK, 3);
  open(group);
  EXPECT_EQ(engine_.joined_ports(), 1U);
  EXPECT_EQ(command(1, GBA_CMD_JOIN, group, 1), unsigned{GBA_CMD_OK});
  EXPECT_EQ(engine_.joined_ports(), 2U);
  ring(0, group, 1);
  ring(1, group, 1);
  EXPECT_TRUE(engine_.scan(0));
  EXPECT_EQ(bar_flag(1, group), 1U);
}

TEST_F(EngineTest, DropsDoorbellsWhileDecodingIsOff) {
  const unsigned group = barrier(1);
  engine_.set_decoding(0, false);
  ring(0, group, 1);
  EXPECT_FALSE(engine_.scan(0));
  engine_.set_decoding(0, true);
  EXPECT_FALSE(engine_.scan(0));
  ring(0, group, 1);
  EXPECT_TRUE(engine_.scan(0));
  EXPECT_EQ(bar_flag(0, group), 1U);
}

TEST_F(EngineTest, TellsAllPortsThatItSleepsAndThatItIsAwake) {
  barrier(1);
  EXPECT_TRUE(engine_.fall_asleep(0));
  EXPECT_EQ(wakeup(0), GBA_WAKEUP_SLEEPING);
  EXPECT_EQ(wakeup(3), GBA_WAKEUP_SLEEPING);
  engine_.awake();
  EXPECT_EQ(wakeup(0), 0U);
  EXPECT_EQ(wakeup(3), 0U);
}

TEST_F(EngineTest, DoesNotFallAsleepIfAnArrivalIsPending) {
  const unsigned group = barrier(1);
  ring(0, group, 1);
  EXPECT_FALSE(engine_.fall_asleep(0));
  EXPECT_EQ(bar_flag(0, group), 1U);
}

TEST_F(EngineTest, CountsPortsNotMemberships) {
  barrier(2);
  barrier(3);
  EXPECT_EQ(engine_.joined_ports(), 3U);
  engine_.reset(2, 0);
  EXPECT_EQ(engine_.joined_ports(), 2U);
}

// Uapi rule 19: a slot is read and cleared in one step.
TEST_F(EngineTest, LosesNoArrivalRungFromAnotherThread) {
  const auto rounds = static_cast<std::uint64_t>(test_support::repeats(2000, 20000));
  const unsigned group = barrier(2);
  std::atomic<bool> stop = false;
  const auto member = [&](unsigned port) {
    auto* const flag = links_[port].flags().at<std::uint64_t>(std::size_t{group} * GBA_FLAG_STRIDE);
    for (std::uint64_t k = 1; k <= rounds && !stop.load(std::memory_order_relaxed); ++k) {
      ring(port, group, k);
      ring(port, group, k);
      while (flag->load(std::memory_order_acquire) != k && !stop.load(std::memory_order_relaxed)) {
        std::this_thread::yield();
      }
    }
  };
  std::thread first(member, 0);
  std::thread second(member, 1);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(100);
  while (bar_flag(0, group) != rounds && std::chrono::steady_clock::now() < end) {
    if (!engine_.scan(0)) {
      std::this_thread::yield();
    }
  }
  EXPECT_EQ(bar_flag(0, group), rounds);
  stop = true;
  first.join();
  second.join();
}

}  // namespace
