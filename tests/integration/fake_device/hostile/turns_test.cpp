// SPDX-License-Identifier: Apache-2.0
// Clients that give the device much work: the work for a client in one turn is bounded.
#include "tests/integration/fake_device/hostile/attack.hpp"

namespace {

using raw::bytes_of;
using raw::Client;
using raw::Fd;
using raw::GoOn;
using raw::milliseconds;
using raw::Port;
using raw::write_of;
using raw::writes;

class Turns : public raw::Attacks {};

constexpr std::uint64_t kMostPairs = 1365;  // a message of 64 KiB

/// A client that is the only member of its group and gets its flag by messages, the first of which it does not answer.
class Unanswering {
 public:
  explicit Unanswering(const std::string& path)
      : port_(path, raw::kVersionWithWriteMultiple), event_(raw::make_eventfd()) {
    limit_sends(port_.client());
    port_.map_dma(kIova, 0x1000, 0, -1);
    const std::array fds{event_.get()};
    port_.arm(GBA_IRQ_MSIX, GBA_MSIX_ERROR_VECTOR, fds);
    const auto group = port_.make_group(1);
    port_.join(group, 0);
    port_.write(GBA_GROUP_BASE(group.id) + GBA_GROUP_RELEASE_ADDR, kIova);
    port_.arrive(group, 0, 1);
    store_ = port_.client().receive()->header;
  }

  /// Sends pairs of writes: one causes a fault and an interrupt, the next clears the fault.
  bool raise_many() {
    static const auto payload = writes(kMostPairs, write_of(GBA_REG_CAPS + 4, 0), write_of(GBA_REG_FAULT, 0xffff));
    return send(port_.client(), VFIO_USER_REGION_WRITE_MULTI, payload);
  }

  bool is_closed_after(std::chrono::seconds time) {
    const auto start = raw::Clock::now();
    return !port_.client().receive() && raw::Clock::now() - start >= time;
  }

  void answer() {
    auto frame = port_.client().frame(VFIO_USER_DMA_WRITE, {}, VFIO_USER_TYPE_REPLY);
    std::memcpy(frame.data(), &store_.msg_id, sizeof store_.msg_id);
    port_.client().send_bytes(frame);
    port_.read(GBA_REG_MAGIC, 4);
  }

 private:
  static constexpr std::uint64_t kIova = 0x7000'0000;
  Port port_;
  Fd event_;
  vfio_user_header store_{};
};

TEST_F(Turns, InterruptsBehindAnUnansweredStoreAreFewWhenItIsAnswered) {
  const auto before = resident_kib();
  expect_harmless([this](const GoOn& go_on, unsigned) {
    Unanswering client(path());
    const auto half = raw::Clock::now() + milliseconds(700);
    while (go_on() && raw::Clock::now() < half && client.raise_many()) {
    }
    client.answer();
  });
  EXPECT_LT(resident_kib(), before + 8192);
}

TEST_F(Turns, AStoreThatIsNeverAnsweredEndsOnlyItsClient) {
  Unanswering client(path());
  EXPECT_TRUE(client.is_closed_after(std::chrono::seconds(9)));
  expect_unharmed();
}

// The device continues the batch although no more bytes arrive.
TEST_F(Turns, ABatchThatTakesSeveralTurnsIsCompleted) {
  Port port(path(), raw::kVersionWithWriteMultiple);
  const auto payload = writes(kMostPairs, write_of(GBA_REG_FAULT, 0), write_of(GBA_REG_CMD, GBA_CMD_ALLOC));
  const auto reply = port.client().call(VFIO_USER_REGION_WRITE_MULTI, payload);
  EXPECT_EQ(reply.as<std::uint64_t>(), 2 * kMostPairs);
  EXPECT_EQ(port.command(GBA_CMD_ALLOC), unsigned{GBA_CMD_ERROR_GROUP_LIMIT});
}

// Uapi rule 37: whatever one client takes, and however often it comes back, those that come get a group.
TEST_F(Turns, AClientThatTakesGroupsLeavesSomeToOthers) {
  constexpr unsigned kNewClients = 40;
  std::atomic<bool> stop = false;
  std::atomic<unsigned> taken = 0;
  std::thread greedy([&] {
    while (!stop) {
      Port port(path());
      for (unsigned error = GBA_CMD_OK; error == GBA_CMD_OK && !stop;) {
        error = port.command(GBA_CMD_ALLOC);
        taken += error == GBA_CMD_OK ? 1 : 0;
      }
      std::this_thread::sleep_for(milliseconds(20));
    }
  });
  unsigned refused = 0;
  const auto limit = raw::Clock::now() + std::chrono::minutes(1);
  const auto is_greedy = [&] { return taken >= GBA_MAX_GROUPS / 4 || raw::Clock::now() > limit; };
  for (unsigned client = 0; client < kNewClients || !is_greedy(); ++client) {
    Port port(path());
    refused += port.command(GBA_CMD_ALLOC) == GBA_CMD_OK ? 0 : 1;
    std::this_thread::sleep_for(milliseconds(5));
  }
  stop = true;
  greedy.join();
  EXPECT_EQ(refused, 0U);
  EXPECT_GE(taken, GBA_MAX_GROUPS / 4);
  expect_unharmed();
}

/// A device that may not watch more descriptors.
class Unwatched : public raw::Bystanders {
 protected:
  Unwatched()
      : Bystanders({}, milliseconds(3), {"env", "LD_PRELOAD=" + test_support::test_program("no_kick_watch.so")}) {}
};

TEST_F(Unwatched, KicksAreNotNeeded) {
  if (test_support::kSanitized) {
    GTEST_SKIP() << "sanitizers are preloaded themselves";
  }
  expect_unharmed();
}

class Connections : public Turns, public ::testing::WithParamInterface<unsigned> {};

TEST_P(Connections, ThatWriteInBatchesDelayNoBarrier) {
  static const auto payload = writes(kMostPairs, write_of(GBA_REG_CMD, GBA_CMD_ALLOC), write_of(GBA_REG_CMD, 0xff));
  expect_harmless(
      [this](const GoOn& go_on, unsigned) {
        Port port(path(), raw::kVersionWithWriteMultiple);
        limit_sends(port.client());
        while (go_on() && send(port.client(), VFIO_USER_REGION_WRITE_MULTI, payload)) {
        }
      },
      GetParam());
}

TEST_P(Connections, ThatSendByteByByteDelayNoBarrier) {
  expect_harmless(
      [this](const GoOn& go_on, unsigned) {
        Client client(path());
        client.version();
        limit_sends(client);
        const auto frame = client.frame(VFIO_USER_DEVICE_FEATURE, std::vector<std::byte>(0x10000),
                                        VFIO_USER_TYPE_COMMAND | VFIO_USER_NO_REPLY);
        std::size_t at = 0;
        while (go_on() && client.send_bytes(std::span(frame).subspan(at, 1))) {
          at = (at + 1) % frame.size();
        }
      },
      GetParam());
}

TEST_P(Connections, ThatReadMuchDelayNoBarrier) {
  expect_harmless(
      [this](const GoOn& go_on, unsigned) {
        Port port(path());
        const vfio_user_region_access access{.offset = 0, .region = GBA_REGION_DOORBELLS, .count = 0x10000};
        while (go_on()) {
          port.client().call(VFIO_USER_REGION_READ, bytes_of(access));
        }
      },
      GetParam());
}

TEST_P(Connections, ThatComeAndGoDelayNoBarrier) {
  expect_harmless(
      [this](const GoOn& go_on, unsigned) {
        while (go_on()) {
          Port port(path());
          port.join(port.make_group(1), 0);
        }
      },
      GetParam());
}

INSTANTIATE_TEST_SUITE_P(Few, Connections, ::testing::Values(2U));
INSTANTIATE_TEST_SUITE_P(Many, Connections, ::testing::Values(32U));

}  // namespace
