// SPDX-License-Identifier: Apache-2.0
// A port whose handlers find no memory: its thread goes on, and what they were told of they are told again.
#include "wire/message_port.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <new>
#include <thread>

namespace wire {
namespace {

using Clock = std::chrono::steady_clock;

/// Throws the first time that it is called.
class Shortage {
 public:
  void meet() {
    if (!met_.exchange(true)) {
      throw std::bad_alloc();
    }
  }
  [[nodiscard]] bool was_met() const { return met_; }

 private:
  std::atomic<bool> met_{false};
};

/// What a port has told its handlers.
struct Told {
  Shortage at_connection, at_loss, at_turn;
  std::atomic<int> connected{0};
  std::atomic<int> lost{0};
  std::atomic<int> received{0};
};

PortHandlers handlers_of(Told& told) {
  return {.receive = [&](std::span<const std::byte> /*head*/, std::span<const std::byte> /*body*/) { ++told.received; },
          .connected =
              [&](std::uint64_t /*route*/) {
                told.at_connection.meet();
                ++told.connected;
              },
          .lost =
              [&](std::uint64_t /*route*/, const std::string& /*why*/) {
                told.at_loss.meet();
                ++told.lost;
              },
          .turn =
              [&] {
                told.at_turn.meet();
                return false;
              }};
}

bool becomes(const std::atomic<int>& count, int expected) {
  const auto end = Clock::now() + std::chrono::seconds(30);
  while (count != expected && Clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return count == expected;
}

PortMessage message() {
  PortMessage made;
  made.body = std::make_unique<std::byte[]>(100);
  made.bytes = 100;
  return made;
}

TEST(MessagePort, HandlersWithoutMemoryAreToldAgain) {
  Told here;
  Told there;
  auto mine = make_message_port(handlers_of(here), false);
  auto theirs = make_message_port(handlers_of(there), false);
  if (!mine || !theirs) {
    GTEST_SKIP() << (!mine ? mine : theirs).error().text;
  }
  // Two routes, of which each is told; messages wait for the connection.
  const std::uint64_t first = (*mine)->open((*theirs)->address());
  const std::uint64_t second = (*mine)->open((*theirs)->address());
  (*mine)->send(first, message());
  (*mine)->send(second, message());
  EXPECT_TRUE(becomes(there.received, 2)) << there.received;
  EXPECT_TRUE(becomes(here.connected, 2)) << here.connected;
  EXPECT_TRUE(here.at_connection.was_met() && here.at_turn.was_met());
  theirs->reset();
  const auto end = Clock::now() + std::chrono::seconds(30);
  while (here.lost == 0 && Clock::now() < end) {
    (*mine)->send(first, message());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(becomes(here.lost, 2)) << here.lost;
  EXPECT_TRUE(here.at_loss.was_met());
}

}  // namespace
}  // namespace wire
