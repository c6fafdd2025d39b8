// SPDX-License-Identifier: Apache-2.0
// Clients that give the device much to do: what one gets done in its turn is bounded.
#include "tests/integration/fake_device/hostile/attack.hpp"

namespace {

using raw::bytes_of;
using raw::Client;
using raw::Fd;
using raw::GoOn;
using raw::milliseconds;
using raw::Port;

class Turns : public raw::Attacks {};

std::vector<std::byte> writes(std::uint64_t count, const vfio_user_write_multi_entry& first,
                              const vfio_user_write_multi_entry& second) {
  auto payload = bytes_of(2 * count);
  payload.reserve(payload.size() + 2 * count * sizeof first);
  for (std::uint64_t pair = 0; pair < count; ++pair) {
    payload = raw::join(std::move(payload), std::as_bytes(std::span(&first, 1)));
    payload = raw::join(std::move(payload), std::as_bytes(std::span(&second, 1)));
  }
  return payload;
}

constexpr std::uint64_t kMostPairs = 1365;  // 64 KiB of them

vfio_user_write_multi_entry write_of(std::uint64_t offset, std::uint64_t value) {
  vfio_user_write_multi_entry entry{.offset = offset, .region = GBA_REGION_CONTROL, .count = 8, .data = {}};
  std::memcpy(entry.data, &value, sizeof value);
  return entry;
}

/// A client that owns a group of itself alone, whose flag can only be written by messages.
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

  /// Faults, each with an interrupt, and each cleared: two writes.
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

TEST_F(Turns, AStoreThatIsNeverAnsweredEndsItsClientAlone) {
  Unanswering client(path());
  EXPECT_TRUE(client.is_closed_after(std::chrono::seconds(9)));
  expect_unharmed();
}

// It goes on although nothing more comes over the connection.
TEST_F(Turns, ABatchThatTakesSeveralIsDoneToItsEnd) {
  Port port(path(), raw::kVersionWithWriteMultiple);
  const auto payload = writes(kMostPairs, write_of(GBA_REG_FAULT, 0), write_of(GBA_REG_CMD, GBA_CMD_ALLOC));
  const auto reply = port.client().call(VFIO_USER_REGION_WRITE_MULTI, payload);
  EXPECT_EQ(reply.as<std::uint64_t>(), 2 * kMostPairs);
  EXPECT_EQ(port.command(GBA_CMD_ALLOC), unsigned{GBA_CMD_ERROR_NO_FREE_GROUP});
}

/// A device whose user watches as many descriptors as it may.
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

TEST_P(Connections, ThatWriteInBatchesDelayNobody) {
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

TEST_P(Connections, ThatSendByteByByteDelayNobody) {
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

TEST_P(Connections, ThatReadMuchDelayNobody) {
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

TEST_P(Connections, ThatComeAndGoDelayNobody) {
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
