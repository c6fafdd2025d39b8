// SPDX-License-Identifier: Apache-2.0
// Lists of blocks, and blocks, of members on other nodes that do not keep to the protocol.
#include <gmock/gmock.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <vector>

#include "kv/exchange/directory_layout.hpp"
#include "tests/unit/kv/exchange_insider.hpp"

namespace {

using exchange_test::address_of;
using exchange_test::connected_member;
using exchange_test::exchange_name;
using exchange_test::Insider;
using exchange_test::kInsiderSlots;
using exchange_test::member_on_node;
using shmem::exchange::BodyWriter;
using shmem::exchange::FoundItem;
using shmem::exchange::kMostSlots;
using shmem::exchange::PieceItem;
using shmem::exchange::RemoteHead;
using shmem::exchange::RemoteKind;
using ::testing::HasSubstr;
using wire::PortMessage;

constexpr std::uint32_t kSeat = SHMEMX_EXCHANGE_MOST_MEMBERS;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;

class ExchangeNodesLists : public exchange_test::InsiderTest {
 protected:
  /// The answer to a request for a list: items with a key of one byte.
  static std::optional<PortMessage> listed(RemoteHead head, std::uint64_t cursor, std::span<const FoundItem> items) {
    BodyWriter body(items.size() * (sizeof(FoundItem) + 1) + 1);
    for (FoundItem item : items) {
      item.key_bytes = 1;
      body.add(item);
      body.add('k');
    }
    head.kind = RemoteKind::kListed;
    head.first = cursor;
    head.count = static_cast<std::uint32_t>(items.size());
    return body.take(head);
  }
  /// What the last of many calls returns, which list the insider to its end.
  int list_all() {
    std::uint64_t cursor = 0;
    int count = 1;
    for (int i = 0; i < 100 && count > 0; ++i) {
      std::array<shmemx_exchange_name_t, 4> names;
      std::array<shmemx_exchange_block_t, 4> blocks;
      count = shmemx_exchange_list(reader_->get(), kSeat, &cursor, names.data(), blocks.data(), names.size());
    }
    return count;
  }
};

TEST_F(ExchangeNodesLists, AListWithoutAnEndEndsTheOwner) {
  constexpr FoundItem kItem{.epoch = 2, .bytes = 8};
  const std::vector<std::function<std::optional<PortMessage>(RemoteHead)>> answers{
      [&](RemoteHead head) {  // more blocks than it has slots, one after the other
        FoundItem item = kItem;
        item.slot = static_cast<std::uint32_t>(head.first);
        return listed(head, head.first + 1, {&item, 1});
      },
      [&](RemoteHead head) {  // more blocks than the cursor moves on
        const std::vector<FoundItem> items(head.second, kItem);
        return listed(head, head.first + 1, items);
      },
      [&](RemoteHead head) {  // the same block again and again
        return listed(head, head.first + 1, {&kItem, 1});
      },
      [&](RemoteHead head) {
        const FoundItem beyond{.epoch = 2, .bytes = 8, .slot = kInsiderSlots};
        return listed(head, head.first + 1, {&beyond, 1});
      },
      [&](RemoteHead head) {
        return listed(head, UINT64_MAX, {&kItem, 1});
      },
  };
  for (std::size_t i = 0; i < answers.size(); ++i) {
    make_beside(230 + static_cast<int>(i));
    insider_->answer_with(answers[i]);
    EXPECT_EQ(list_all(), -EBADMSG) << i;
    EXPECT_TRUE(insider_->is_ended()) << i;
  }
}

TEST_F(ExchangeNodesLists, AListThatKeepsToTheProtocolIsTaken) {
  make_beside(240);
  insider_->answer_with([](RemoteHead head) {
    const FoundItem last{.epoch = 2, .bytes = kMostBytes, .slot = kInsiderSlots - 1};
    return listed(head, kInsiderSlots, std::span(&last, head.first < kInsiderSlots ? 1 : 0));
  });
  EXPECT_EQ(list_all(), 0);
  EXPECT_EQ(reader_->stats().members, 1U);
}

TEST_F(ExchangeNodesLists, BlocksLargerThanMemoryCanBeEndTheOwner) {
  int number = 241;
  for (const std::uint64_t bytes : {UINT64_MAX, kMostBytes + 1}) {
    const FoundItem item{.epoch = 2, .bytes = bytes};
    make_beside(number++);
    insider_->answer_with([&](RemoteHead head) { return listed(head, head.first + 1, {&item, 1}); });
    EXPECT_EQ(list_all(), -EBADMSG) << bytes;
    EXPECT_TRUE(insider_->is_ended()) << bytes;
    make_beside(number++);
    insider_->answer_with([&](RemoteHead head) {
      head.kind = RemoteKind::kFound;
      head.count = 1;
      return std::optional(Insider::message_of(head, std::as_bytes(std::span(&item, 1))));
    });
    EXPECT_EQ(reader_->find("key").status, -ENOENT) << bytes;
    EXPECT_TRUE(insider_->is_ended()) << bytes;
  }
}

TEST_F(ExchangeNodesLists, ABlockThatCannotBePulledDoesNotHideThatOfAnotherOwner) {
  int number = 260;
  for (const int error : {-EIO, -EBADMSG}) {
    make_beside(number);
    insider_->answer_with([&](RemoteHead head) {
      const FoundItem item{.epoch = 2, .bytes = 100};
      const PieceItem piece{.index = 0, .status = error};
      const bool is_find = head.kind == RemoteKind::kFind;
      head.kind = is_find ? RemoteKind::kFound : RemoteKind::kPieces;
      head.count = 1;
      return std::optional(is_find ? Insider::message_of(head, std::as_bytes(std::span(&item, 1)))
                                   : Insider::message_of(head, std::as_bytes(std::span(&piece, 1))));
    });
    const auto owner = connected_member(exchange_name(number++), "node 1", address_of(*reader_));
    owner->make_memory(4096);
    ASSERT_EQ(owner->publish("key", 0, 100), 0);
    for (int i = 0; i < 5'000 && reader_->stats().members < 2; ++i) {
      ::usleep(1000);
    }
    const auto bad = reader_->find("key");
    ASSERT_EQ(bad.member, 666U);
    std::string bytes;
    EXPECT_EQ(reader_->pull(bad, bytes), error);
    const auto good = reader_->find("key");
    EXPECT_EQ(good.seat, kSeat + 1) << error;
    EXPECT_EQ(reader_->pull(good, bytes), 0) << error;
  }
}

TEST_F(ExchangeNodesLists, AnOwnerOfNoSlotsOrTooManyIsNotLinked) {
  int number = 250;
  for (const std::uint32_t slots : {std::uint32_t{0}, kMostSlots + 1, UINT32_MAX}) {
    const Insider insider(exchange_name(number), 666, slots);
    const auto member = member_on_node(exchange_name(number++), "node 2");
    const std::string place = insider.place();
    const auto network = exchange_test::network_of(place);
    EXPECT_EQ(shmemx_exchange_connect(member->get(), &network), -EACCES) << slots;
    EXPECT_THAT(member->error(), HasSubstr("it does not follow the protocol"));
    EXPECT_EQ(member->stats().members, 0U) << slots;
  }
}

}  // namespace
