// SPDX-License-Identifier: Apache-2.0
// Interrupts that take long, by a clock of the test.
#include "fake_device/interrupt_queue.hpp"

#include <gmock/gmock.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fake_device/interrupts.hpp"
#include "tests/unit/fake_device/given.hpp"
#include "uapi/vfio_user.h"

namespace {

using fake_device::EventSignaller;
using fake_device::InterruptQueue;
using fake_device::IrqTable;
using fake_device::Time;
using fake_device_test::take_count;

constexpr unsigned kVectors = 8;

// A clock has no arguments.
Time now = 0;
Time each_look = 0;  // the clock goes on by this much at each look: a signal takes as long

Time look() {
  return now += each_look;
}

/// One client with all its vectors armed.
class Client {
 public:
  explicit Client(InterruptQueue& queue) : irqs_(kVectors, queue) {
    for (unsigned vector = 0; vector < kVectors; ++vector) {
      arm(vector);
    }
  }

  void arm(unsigned vector) {
    eventfds_[vector] = base::UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    std::vector<fake_device::Given> fds;
    fds.push_back(fake_device_test::again(eventfds_[vector]));
    set(vector, VFIO_USER_IRQ_DATA_EVENTFD, std::move(fds));
  }
  void disarm(unsigned vector) { set(vector, VFIO_USER_IRQ_DATA_EVENTFD, {}); }
  void raise(unsigned vector) { irqs_.raise(GBA_IRQ_MSIX, vector); }
  /// How often each vector came since the last call.
  std::array<std::uint64_t, kVectors> counts() {
    std::array<std::uint64_t, kVectors> counts{};
    for (unsigned vector = 0; vector < kVectors; ++vector) {
      counts[vector] = take_count(eventfds_[vector]);
    }
    return counts;
  }

 private:
  void set(unsigned vector, std::uint32_t data, std::vector<fake_device::Given> fds) {
    EXPECT_EQ(irqs_.set(GBA_IRQ_MSIX, data | VFIO_USER_IRQ_ACTION_TRIGGER, vector, 1, {}, std::move(fds)), 0);
  }

  IrqTable irqs_;
  std::array<base::UniqueFd, kVectors> eventfds_;
};

class QueuedInterrupts : public ::testing::Test {
 protected:
  void SetUp() override { each_look = 0; }
  static void raise_all(Client& client) {
    for (unsigned vector = 0; vector < kVectors; ++vector) {
      client.raise(vector);
    }
  }

  EventSignaller signaller_;
  InterruptQueue queue_{signaller_, look};
};

TEST_F(QueuedInterrupts, ComeAtOnce) {
  Client client(queue_);
  for (int round = 1; round <= 3; ++round) {
    raise_all(client);
  }
  EXPECT_THAT(client.counts(), ::testing::Each(3U));
  EXPECT_TRUE(queue_.empty());
}

TEST_F(QueuedInterrupts, ThatTakeLongWaitForTheNextTurnEachOnce) {
  Client client(queue_);
  each_look = InterruptQueue::kTurn;
  for (int round = 1; round <= 3; ++round) {
    raise_all(client);
  }
  EXPECT_THAT(client.counts(), ::testing::ElementsAre(1, 0, 0, 0, 0, 0, 0, 0));
  queue_.next_turn();
  EXPECT_THAT(client.counts(), ::testing::ElementsAre(0, 1, 0, 0, 0, 0, 0, 0))
      << "the first has come and may come again";
  for (unsigned turn = 0; turn < kVectors - 1; ++turn) {
    EXPECT_FALSE(queue_.empty());
    queue_.next_turn();
  }
  EXPECT_THAT(client.counts(), ::testing::ElementsAre(1, 0, 1, 1, 1, 1, 1, 1));
  EXPECT_TRUE(queue_.empty());
}

TEST_F(QueuedInterrupts, OfOthersComeBeforeThoseThatTakeLong) {
  Client slow(queue_);
  Client other(queue_);
  each_look = InterruptQueue::kTurn;
  raise_all(slow);
  while (!queue_.empty()) {
    queue_.next_turn();
  }
  queue_.next_turn();
  raise_all(slow);  // the first at once, the rest waits
  slow.counts();
  each_look = 0;
  other.raise(0);
  EXPECT_THAT(other.counts(), ::testing::Each(0U)) << "the turn is over";
  each_look = InterruptQueue::kTurn;
  queue_.next_turn();
  EXPECT_EQ(other.counts()[0], 1U);
  EXPECT_THAT(slow.counts(), ::testing::Each(0U));
}

TEST_F(QueuedInterrupts, ThatWaitGoToTheEventfdThatIsArmedMeanwhileOrNowhere) {
  Client client(queue_);
  each_look = InterruptQueue::kTurn;
  raise_all(client);
  client.arm(1);
  client.disarm(2);
  each_look = 0;
  queue_.next_turn();
  EXPECT_THAT(client.counts(), ::testing::ElementsAre(1, 1, 0, 1, 1, 1, 1, 1));
}

TEST_F(QueuedInterrupts, OfAClientThatIsGoneAreForgotten) {
  Client stays(queue_);
  {
    Client goes(queue_);
    each_look = InterruptQueue::kTurn;
    raise_all(goes);
    stays.raise(3);
  }
  each_look = 0;
  queue_.next_turn();
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(stays.counts()[3], 1U);
}

}  // namespace
