// SPDX-License-Identifier: Apache-2.0
// Descriptors in messages whose close() takes as long as their sender likes: no call waits for it.
#include <chrono>
#include <vector>

#include "tests/support/lingering_sockets.hpp"
#include "tests/unit/kv/exchange_impostor.hpp"

namespace {

using namespace exchange_test;  // NOLINT(google-build-using-namespace): what the test is about

/// Much less than a minute, for which a close() waits.
constexpr std::chrono::seconds kAtOnce{30};

class LingeringSockets : public test_support::LingeringSockets {
 public:
  using test_support::LingeringSockets::send;
  void send(const Channel& channel, const void* data, std::size_t bytes, std::size_t count) {
    send(channel.fd(), data, bytes, count);
  }
  void send(const Channel& channel, const ChannelMessage& message, std::size_t count) {
    send(channel.fd(), &message, sizeof message, count);
  }
};

template <typename Call>
void expect_at_once(const char* what, Call call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kAtOnce) << what;
}

/// Another member finds and reads a block of `owner`, which then withdraws it.
void expect_service(const std::string& name, Member& owner) {
  expect_at_once("calls", [&] {
    ASSERT_EQ(owner.publish("key", 0, 8), 0);
    Member reader(name, {.join_ms = 500});
    std::string bytes;
    EXPECT_EQ(reader.pull(reader.find_soon("key"), bytes), 0);
    EXPECT_EQ(owner.withdraw("key", kSecond), 0);
  });
}

TEST(SlowDescriptors, OfAReaderHoldUpNeitherItsOwnerNorOthers) {
  const std::string name = exchange_name(701);
  LingeringSockets sockets;
  Member owner(name, {.lease_ms = 1000});
  owner.make_memory(4096);
  std::vector<Channel> channels;
  for (int i = 0; i < 4; ++i) {
    channels.push_back(*Channel::connect(name, 0));
    // A hello and garbage, with one, two and more descriptors, and messages that nobody will read.
    sockets.send(channels.back(), message_of(Kind::kHello, 40), static_cast<std::size_t>(1 + i));
    sockets.send(channels.back(), "short", 5, 1);
    sockets.send(channels.back(), message_of(Kind::kRegion, 1), 2);
  }
  expect_service(name, owner);
  expect_at_once("close", [&] { owner.close(); });
}

TEST(SlowDescriptors, OfAFewReadersLeaveRoomForOthers) {
  constexpr int kSlow = 3;
  constexpr int kOrdinary = 100;  // more than may wait to be closed
  const std::string name = exchange_name(702);
  LingeringSockets sockets;
  Member owner(name, {.lease_ms = 1000});
  owner.make_memory(4096);
  for (int i = 0; i < kSlow; ++i) {
    Channel channel = *Channel::connect(name, 0);
    sockets.send(channel, "short", 5, 1);
    sockets.send(channel, message_of(Kind::kRegion, 1), 2);  // nobody will read it
    EXPECT_TRUE(is_closed(channel));
  }
  for (int i = 0; i < kOrdinary; ++i) {
    Channel channel = *Channel::connect(name, 0);
    ASSERT_EQ(channel.send(message_of(Kind::kGone, 1)), std::errc{});
    ASSERT_TRUE(is_closed(channel));
  }
  expect_service(name, owner);
  expect_at_once("close", [&] { owner.close(); });
}

TEST(SlowDescriptors, OfAnOwnerHoldUpNoReader) {
  for (int variant = 0; variant < 6; ++variant) {
    const std::string name = exchange_name(710 + variant);
    LingeringSockets sockets;
    const auto memory = base::create_memfd("memory", 4096);
    Impostor impostor(name);
    const auto member = open_beside(name, [&] {
      Channel& reader = impostor.reader();
      switch (variant) {
        case 0:
          sockets.send(reader, impostor.welcome(), 2);
          break;
        case 1:
          sockets.send(reader, impostor.welcome(), 5);
          break;
        case 2:
          sockets.send(reader, message_of(Kind::kRegion, 1), 1);
          impostor.send(impostor.welcome(), impostor.files());
          break;
        default:
          impostor.send(impostor.welcome(), impostor.files());
          impostor.send_region(1, memory->get(), 0, 4096);
          break;
      }
      if (variant == 3) {
        sockets.send(reader, message_of(Kind::kRegion, 2), 1);
        impostor.publish("slow", {2, 0, 8, 0});
      } else if (variant == 4) {
        sockets.send(reader, message_of(Kind::kGone, 1), 2);
      } else if (variant == 5) {
        sockets.send(reader, message_of(Kind::kRegion, 3), 6);
      }
    });
    member->make_memory(4096);
    if (variant == 3) {
      expect_at_once("find", [&] {
        std::string bytes;
        EXPECT_EQ(member->pull(member->find("slow"), bytes), -EBADMSG);
      });
    }
    expect_service(name, *member);
    expect_at_once("close", [&] { member->close(); });
  }
}

/// An owner that tells of memory while this process is out of descriptors is not to blame.
TEST(SlowDescriptors, AMemberWithoutAnyLosesNoOwner) {
  Beside beside(720);
  const auto more = base::create_memfd("more", 4096);
  beside.impostor.publish("key", {2, 0, 8, 0});
  const auto block = beside.member->find("key");
  ASSERT_EQ(block.status, 0);
  std::string bytes;
  {
    const FewDescriptors none(FewDescriptors::kNone);
    beside.impostor.send_region(2, more->get(), 0, 4096);
    for (int i = 0; i < 20; ++i) {  // by this thread, or by that of the member
      EXPECT_EQ(beside.member->pull(block, bytes), -EMFILE);
      ::usleep(1000);
    }
  }
  EXPECT_EQ(beside.member->pull(block, bytes), 0);
  EXPECT_EQ(beside.member->stats().members, 1U);
  shmemx_exchange_member_t described{};
  ASSERT_EQ(shmemx_exchange_members(beside.member->get(), &described, 1), 1);
  EXPECT_EQ(described.refusals, 0U);
}

}  // namespace
