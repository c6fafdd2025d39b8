// SPDX-License-Identifier: Apache-2.0
// Splitting a byte stream into messages, and posted writes, for which interrupts wait.
#include "fake_device/message.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "tests/unit/fake_device/given.hpp"

namespace {

using fake_device::kMaxMessage;
using fake_device::MessageReader;
using fake_device::PostedWrites;
using fake_device::VectorSet;
using fake_device::VfioUserMessage;
using ::testing::IsEmpty;

std::vector<std::byte> frame(std::uint16_t command, std::size_t payload) {
  const vfio_user_header header{.msg_id = 7,
                                .command = command,
                                .msg_size = static_cast<std::uint32_t>(sizeof header + payload),
                                .flags = 0,
                                .error = 0};
  std::vector<std::byte> bytes(sizeof header + payload);
  std::memcpy(bytes.data(), &header, sizeof header);
  for (std::size_t index = 0; index < payload; ++index) {
    bytes[sizeof header + index] = static_cast<std::byte>(index);
  }
  return bytes;
}

/// Feeds up to `piece` bytes at a time, as the reader asks for them.
std::vector<VfioUserMessage> feed(MessageReader& reader, std::span<const std::byte> bytes, std::size_t piece) {
  std::vector<VfioUserMessage> messages;
  while (!bytes.empty()) {
    const auto room = reader.room();
    EXPECT_FALSE(room.empty());
    const auto count = std::min({piece, room.size(), bytes.size()});
    std::copy_n(bytes.begin(), count, room.begin());
    EXPECT_TRUE(reader.commit(count, {}));
    bytes = bytes.subspan(count);
    if (auto message = reader.take()) {
      messages.push_back(*std::move(message));
    }
  }
  return messages;
}

TEST(MessageReader, AssemblesMessagesFromPiecesOfAnySize) {
  std::vector<std::byte> stream;
  for (const std::size_t payload : {0U, 1U, 16U, 4095U, 4096U, 4097U, 60000U}) {
    const auto message = frame(static_cast<std::uint16_t>(payload % 100), payload);
    stream.insert(stream.end(), message.begin(), message.end());
  }
  for (const std::size_t piece : {1U, 3U, 15U, 16U, 17U, 4096U, 100000U}) {
    MessageReader reader;
    const auto messages = feed(reader, stream, piece);
    ASSERT_EQ(messages.size(), 7U);
    EXPECT_EQ(messages.back().payload.size(), 60000U);
    EXPECT_EQ(messages.back().payload[59999], static_cast<std::byte>(59999 & 0xff));
    EXPECT_THAT(messages.front().payload, IsEmpty());
  }
}

TEST(MessageReader, NeverAsksForBytesOfTheNextMessage) {
  MessageReader reader;
  EXPECT_EQ(reader.room().size(), sizeof(vfio_user_header));
  const auto message = frame(1, 10);
  feed(reader, std::span(message).first(16), 16);
  EXPECT_EQ(reader.room().size(), 10U);
}

TEST(MessageReader, UsesNoMoreMemoryThanWasSent) {
  MessageReader reader;
  const auto message = frame(1, 60000);
  feed(reader, std::span(message).first(16), 16);
  EXPECT_LE(reader.room().size(), 4096U);
}

TEST(MessageReader, AttachesDescriptorsToTheirMessage) {
  MessageReader reader;
  const auto first = frame(1, 4);
  const auto second = frame(2, 4);
  auto room = reader.room();
  std::copy_n(first.begin(), 16, room.begin());
  std::vector<fake_device::Given> fds;
  fds.push_back(fake_device_test::given(base::UniqueFd(::dup(STDERR_FILENO))));
  ASSERT_TRUE(reader.commit(16, std::move(fds)));
  EXPECT_FALSE(reader.take());
  feed(reader, std::span(first).subspan(16, 3), 3);
  room = reader.room();
  room[0] = std::byte{3};
  ASSERT_TRUE(reader.commit(1, {}));
  const auto message = reader.take();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->fds.size(), 1U);
  EXPECT_THAT(feed(reader, second, 100).front().fds, IsEmpty());
}

TEST(MessageReader, RefusesInvalidSizes) {
  for (const std::uint32_t size : {0U, 15U, kMaxMessage + 1, 0xffffffffU}) {
    MessageReader reader;
    auto message = frame(1, 0);
    std::memcpy(message.data() + offsetof(vfio_user_header, msg_size), &size, sizeof size);
    std::copy(message.begin(), message.end(), reader.room().begin());
    EXPECT_FALSE(reader.commit(message.size(), {})) << size;
  }
}

TEST(MessageReader, KeepsNoDescriptorsOfAMessageWithTooMany) {
  const auto account = std::make_shared<fake_device::FdAccount>();
  MessageReader reader;
  const auto message = frame(1, 99);
  std::copy(message.begin(), message.begin() + 16, reader.room().begin());
  for (std::size_t count = 0; count < 100; ++count) {
    std::vector<fake_device::Given> fds;
    fds.emplace_back(fake_device_test::closer(), account, base::UniqueFd(::dup(STDERR_FILENO)));
    ASSERT_TRUE(reader.commit(count == 0 ? 16 : 1, std::move(fds)));
    ASSERT_TRUE(count < fake_device::kMaxFds || fake_device_test::closer().done(20'000));
    EXPECT_LE(account->open, fake_device::kMaxFds);
    EXPECT_TRUE(count == 99 || !reader.room().empty());
  }
  const auto taken = reader.take();
  ASSERT_TRUE(taken);
  EXPECT_TRUE(taken->too_many_fds);
  EXPECT_THAT(taken->fds, IsEmpty());
}

TEST(MessageReader, ReportsWhichMessageHasLostDescriptors) {
  MessageReader reader;
  const auto message = frame(1, 0);
  std::copy(message.begin(), message.end(), reader.room().begin());
  ASSERT_TRUE(reader.commit(8, {}, /*fds_lost=*/true));
  EXPECT_TRUE(reader.unfinished());
  ASSERT_TRUE(reader.commit(8, {}));
  EXPECT_TRUE(reader.take()->fds_lost);
  EXPECT_FALSE(reader.unfinished());
  EXPECT_FALSE(feed(reader, message, 100).front().fds_lost);
}

TEST(PostedWrites, HoldNoInterruptWhileNothingIsOutstanding) {
  PostedWrites writes;
  EXPECT_FALSE(writes.hold(3));
}

TEST(PostedWrites, HoldInterruptsUntilTheStoresBeforeThemAreAnswered) {
  PostedWrites writes;
  const auto first = writes.sent({.group = 0, .iova = 0x10}, 5);
  ASSERT_TRUE(writes.hold(1));
  const auto second = writes.sent({.group = 0, .iova = 0x20}, 5);
  ASSERT_TRUE(writes.hold(2));
  ASSERT_TRUE(writes.hold(2)) << "raised twice, held once";
  const auto out_of_order = writes.completed(second, true);
  ASSERT_TRUE(out_of_order);
  EXPECT_TRUE(out_of_order->interrupts.none());
  const auto rest = writes.completed(first, true);
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->interrupts, VectorSet(0b110));
  EXPECT_FALSE(writes.hold(3));
}

TEST(PostedWrites, ReportSinceWhenTheOldestHasNoAnswer) {
  PostedWrites writes;
  EXPECT_EQ(writes.oldest(), fake_device::kNever);
  const auto first = writes.sent({.group = 0, .iova = 0x10}, 100);
  const auto second = writes.sent({.group = 0, .iova = 0x20}, 200);
  EXPECT_EQ(writes.oldest(), 100U);
  writes.completed(second, true);
  EXPECT_EQ(writes.oldest(), 100U);
  writes.completed(first, true);
  EXPECT_EQ(writes.oldest(), fake_device::kNever);
}

TEST(PostedWrites, NameTheStoreThatFailed) {
  PostedWrites writes;
  const auto id = writes.sent({.group = 4, .iova = 0x40}, 5);
  const auto completion = writes.completed(id, false);
  ASSERT_TRUE(completion && completion->failed);
  EXPECT_EQ(completion->failed->group, 4U);
  EXPECT_EQ(completion->failed->iova, 0x40U);
}

TEST(PostedWrites, RefuseUnexpectedAnswers) {
  PostedWrites writes;
  EXPECT_FALSE(writes.completed(0, true));
  const auto first = writes.sent({.group = 0, .iova = 0}, 5);
  writes.sent({.group = 0, .iova = 0}, 5);
  EXPECT_TRUE(writes.completed(first, true));
  EXPECT_FALSE(writes.completed(first, true)) << "answered twice";
}

}  // namespace
