// SPDX-License-Identifier: Apache-2.0
// How long a reader waits for a member on another node that only pretends to answer, and how much an owner keeps for a
// reader that takes no answers. Without a network.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "base/memfd.hpp"
#include "kv/exchange/directory_writer.hpp"
#include "kv/exchange/remote_peer.hpp"
#include "kv/exchange/remote_readers.hpp"

namespace {

using namespace shmem::exchange;  // NOLINT(google-build-using-namespace): what the test is about
using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::PortMessage;
using Clock = RemotePeer::Clock;

constexpr milliseconds kLimit{300};
/// A small part of the limit: the member is never silent for long.
constexpr milliseconds kPause{10};
constexpr seconds kMostTime{60};  // much less than a member needs that sends too slowly

/// A member that says something all the time, as long as it exists.
class Pretender {
 public:
  using Say = std::function<void(RemotePeer&)>;
  explicit Pretender(Say say)
      : thread_([this, say = std::move(say)] {
          while (!stop_) {
            say(*peer_);
            std::this_thread::sleep_for(kPause);
          }
        }) {}
  Pretender(const Pretender&) = delete;
  Pretender& operator=(const Pretender&) = delete;
  ~Pretender() {
    stop_ = true;
    thread_.join();
  }
  [[nodiscard]] const std::shared_ptr<RemotePeer>& peer() const { return peer_; }

 private:
  std::shared_ptr<RemotePeer> peer_ = std::make_shared<RemotePeer>(
      RemotePeer::Identity{.member = 1, .seat = 64, .slots = 8, .requests = 1}, kLimit,
      [](const PortMessage& /*message*/) {}, [] {});
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

RemoteHead head_of(RemoteKind kind, std::uint64_t number, std::uint32_t count) {
  RemoteHead head;
  head.kind = kind;
  head.number = number;
  head.count = count;
  return head;
}

TEST(ExchangeRemoteLimits, AMemberThatAnswersOtherCallsIsGivenUp) {
  const Pretender member([](RemotePeer& peer) { peer.receive(head_of(RemoteKind::kFound, 1000, 0), {}); });
  const auto begin = Clock::now();
  const std::array<Key, 1> keys{*Key::make("key", 3)};
  RemoteFind find(*member.peer(), keys, 0, 0);
  EXPECT_TRUE(find.finish().empty());
  EXPECT_EQ(member.peer()->status(), -ETIMEDOUT);
  EXPECT_LT(Clock::now() - begin, kMostTime);
}

/// Pulls from a member that sends a byte at a time: 1,000 s for the block. Returns how many it has sent.
std::uint64_t pull_slowly() {
  constexpr std::size_t kBytes = 100'000;
  std::atomic<bool> asked{false};
  std::atomic<std::uint64_t> sent{0};
  const Pretender member([&](RemotePeer& peer) {
    if (asked && peer.is_alive()) {
      BodyWriter body(sizeof(PieceItem) + 1);
      body.add(PieceItem{0, 0, sent++, 1});
      body.add_bytes("x", 1);
      const PortMessage message = body.take({});
      peer.receive(head_of(RemoteKind::kPieces, 1, 1), {message.body.get(), message.bytes});
    }
  });
  std::string room(kBytes, '?');
  void* const to = room.data();
  const Block block{
      .member = 1, .epoch = 2, .bytes = kBytes, .layout = 0, .seat = 64, .slot = 0, .lease = 0, .status = 0};
  std::int32_t status = 0;
  const auto begin = Clock::now();
  RemotePull pull(member.peer(), {&block, 1}, &to, &status);
  asked = true;
  pull.finish();
  EXPECT_EQ(status, -ETIMEDOUT);
  EXPECT_LT(Clock::now() - begin, kMostTime);
  return sent;
}

TEST(ExchangeRemoteLimits, AMemberThatSendsTooSlowlyIsGivenUp) {
  std::uint64_t sent = 0;
  for (int i = 0; i < 20 && sent <= 10; ++i) {  // without a processor its thread is silent
    sent = pull_slowly();
  }
  EXPECT_GT(sent, 10U) << "it has not been silent";
}

/// Such as of a process that got no processor: the answer may be there already, and its thread has not taken it yet.
TEST(ExchangeRemoteLimits, ACallerThatIsLateItselfStillGetsTheAnswer) {
  const std::array<Key, 1> keys{*Key::make("key", 3)};
  bool in_time = false;
  for (int i = 0; i < 20 && !in_time; ++i) {
    RemotePeer peer(
        {.member = 1, .seat = 64, .slots = 8, .requests = 1}, kLimit, [](const PortMessage& /*message*/) {}, [] {});
    RemoteFind find(peer, keys, 0, 0);
    std::this_thread::sleep_for(2 * kLimit);
    const auto begin = Clock::now();
    std::thread answers([&] {
      std::this_thread::sleep_for(kPause);
      const FoundItem none{.status = -ENOENT};
      peer.receive(head_of(RemoteKind::kFound, 1, 1), std::as_bytes(std::span(&none, 1)));
      in_time = Clock::now() - begin < kLimit / 2;
    });
    const bool answered = !find.finish().empty();
    answers.join();
    EXPECT_TRUE(answered || !in_time);
  }
  EXPECT_TRUE(in_time);
}

TEST(ExchangeRemoteLimits, PiecesOfNothingMakeNoSense) {
  RemotePeer peer(
      {.member = 1, .seat = 64, .slots = 8, .requests = 1}, kLimit, [](const PortMessage& /*message*/) {}, [] {});
  const auto shared = std::shared_ptr<RemotePeer>(&peer, [](auto*) {});
  std::array<std::byte, 8> room{};
  void* const to = room.data();
  const Block block{.member = 1, .epoch = 2, .bytes = 8, .layout = 0, .seat = 64, .slot = 0, .lease = 0, .status = 0};
  std::int32_t status = 0;
  RemotePull pull(shared, {&block, 1}, &to, &status);
  EXPECT_FALSE(peer.receive(head_of(RemoteKind::kPieces, 1, 0), {}));
  peer.end(std::errc::bad_message);
}

TEST(ExchangeRemoteLimits, BlocksOfAnySizeHaveADeadline) {
  RemotePeer peer(
      {.member = 1, .seat = 64, .slots = 8, .requests = 1}, kLimit, [](const PortMessage& /*message*/) {}, [] {});
  const auto shared = std::shared_ptr<RemotePeer>(&peer, [](auto*) {});
  std::byte room{};
  void* const to = &room;
  std::array<void*, 3> destinations{to, to, to};
  const Block block{
      .member = 1, .epoch = 2, .bytes = UINT64_MAX, .layout = 0, .seat = 64, .slot = 0, .lease = 0, .status = 0};
  const std::array<Block, 3> blocks{block, block, block};
  std::array<std::int32_t, 3> statuses{};
  RemotePull(shared, blocks, destinations.data(), statuses.data()).finish();
  EXPECT_EQ(statuses, (std::array<std::int32_t, 3>{-ETIMEDOUT, -ETIMEDOUT, -ETIMEDOUT})) << "it has been silent";
}

/// Pulls from a member to which requests are sent as long as there is memory.
class ShortPulls : public testing::Test {
 protected:
  RemotePull pull() { return {peer_, blocks_, destinations_.data(), statuses_.data()}; }

  bool has_memory_ = true;
  const std::shared_ptr<RemotePeer> peer_ = std::make_shared<RemotePeer>(
      RemotePeer::Identity{.member = 1, .seat = 64, .slots = 8, .requests = 1}, kLimit,
      [this](const PortMessage& /*message*/) {
        if (!has_memory_) {
          throw std::bad_alloc();
        }
      },
      [] {});
  // For more requests than are under way at a time.
  const std::vector<Block> blocks_ = std::vector<Block>(
      4 * kMostPullItems,
      {.member = 1, .epoch = 2, .bytes = 1, .layout = 0, .seat = 64, .slot = 0, .lease = 0, .status = 0});
  std::byte room_{};
  std::vector<void*> destinations_ = std::vector<void*>(blocks_.size(), &room_);
  std::vector<std::int32_t> statuses_ = std::vector<std::int32_t>(blocks_.size());
};

TEST_F(ShortPulls, ARequestWithoutMemoryTakesNoTurn) {
  has_memory_ = false;
  for (std::uint32_t i = 0; i < 2 * kMostPullRequests; ++i) {
    EXPECT_THROW(static_cast<void>(pull()), std::bad_alloc);
  }
  for (std::uint32_t i = 0; i < kMostPullRequests; ++i) {
    EXPECT_TRUE(peer_->try_turn()) << i;
  }
}

TEST_F(ShortPulls, TheEndOfAPullNeedsNoMemory) {
  {
    const RemotePull under_way = pull();
    has_memory_ = false;
  }
  EXPECT_EQ(peer_->status(), -ETIMEDOUT) << "it has waited for what was under way";
}

/// An owner of a block of a page, and a reader that asks for it.
class Owner {
 public:
  static constexpr std::uint64_t kSession = 5;
  static constexpr std::uint64_t kBytes = 4096;

  Owner() {
    EXPECT_TRUE(readers.add_region(1, *base::create_memfd("blocks", kBytes), {0, kBytes}));
    EXPECT_TRUE(readers.add(kSession, 1, 2));
    EXPECT_EQ(writer.publish(*Key::make("key", 3), {1, 0, kBytes, 0}), std::errc{});
  }
  /// Asks for the block, `count` times with one request.
  RemoteReaders::Outcome pull(std::uint32_t count) {
    RemoteHead head = head_of(RemoteKind::kPull, ++requests, count);
    head.session = kSession;
    const std::vector<PullItem> items(count, {.epoch = 2, .bytes = kBytes, .slot = 0, .reserved = 0});
    return readers.receive(head, std::as_bytes(std::span(items)));
  }
  void turn() {
    for (int i = 0; i < 1000 && readers.turn(); ++i) {
    }
  }
  /// All messages have been sent.
  void send_all() {
    for (const PortMessage& message : waiting) {
      message.under_way->fetch_sub(1);
    }
    waiting.clear();
  }

  DirectoryWriter writer{*DirectoryWriter::create(8)};
  std::vector<PortMessage> waiting;
  std::uint64_t requests = 0;
  RemoteReaders readers{
      DirectoryReader(writer.memory(), writer.slots()),
      {.quota = 2, .lease_ms = 1000},
      [this](std::uint64_t /*route*/, PortMessage message) { waiting.push_back(std::move(message)); }};
};

TEST(ExchangeRemoteLimits, AReaderHasSoManyPullsUnderWay) {
  Owner owner;
  for (std::size_t i = 0; i < kMostRemotePulls / kMostPullItems; ++i) {
    ASSERT_EQ(owner.pull(kMostPullItems), RemoteReaders::Outcome::kDone) << i;
  }
  EXPECT_EQ(owner.pull(1), RemoteReaders::Outcome::kInvalid);
  owner.turn();
  owner.send_all();
  EXPECT_EQ(owner.pull(1), RemoteReaders::Outcome::kDone) << "some have been answered";
}

TEST(ExchangeRemoteLimits, BlocksAreSentInSoManyMessagesAtATime) {
  Owner owner;
  for (std::uint32_t i = 0; i < kMostMessagesUnderWay + 2; ++i) {
    ASSERT_EQ(owner.pull(1), RemoteReaders::Outcome::kDone) << i;
  }
  owner.turn();
  EXPECT_EQ(owner.waiting.size(), kMostMessagesUnderWay) << "the reader has taken none of them";
  owner.send_all();
  owner.turn();
  EXPECT_EQ(owner.waiting.size(), 2U);
}

TEST(ExchangeRemoteLimits, AReaderThatTakesNoAnswersIsDropped) {
  DirectoryWriter writer(*DirectoryWriter::create(8));
  std::vector<PortMessage> waiting;
  RemoteReaders readers(DirectoryReader(writer.memory(), writer.slots()), {.quota = 2, .lease_ms = 1000},
                        [&](std::uint64_t /*route*/, PortMessage message) { waiting.push_back(std::move(message)); });
  ASSERT_TRUE(readers.add(Owner::kSession, 1, 2));
  for (const RemoteKind kind : {RemoteKind::kList, RemoteKind::kDescribe, RemoteKind::kFind}) {
    RemoteHead head = head_of(kind, 1, kind == RemoteKind::kFind ? 1 : 0);
    head.session = Owner::kSession;
    BodyWriter body(7);
    if (kind == RemoteKind::kFind) {
      body.add(std::uint32_t{3});
      body.add_bytes("key", 3);
    }
    const PortMessage message = body.take(head);
    const std::span<const std::byte> bytes(message.body.get(), message.bytes);
    while (waiting.size() < kMostAnswersUnderWay) {
      ASSERT_EQ(readers.receive(head, bytes), RemoteReaders::Outcome::kDone);
    }
    EXPECT_EQ(readers.receive(head, bytes), RemoteReaders::Outcome::kInvalid);
    EXPECT_EQ(waiting.size(), kMostAnswersUnderWay);
    waiting.back().under_way->fetch_sub(1);  // one has been sent
    waiting.pop_back();
    EXPECT_EQ(readers.receive(head, bytes), RemoteReaders::Outcome::kDone);
    for (const PortMessage& answer : waiting) {
      answer.under_way->fetch_sub(1);
    }
    waiting.clear();
  }
}

}  // namespace
