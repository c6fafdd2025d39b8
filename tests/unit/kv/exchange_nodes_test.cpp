// SPDX-License-Identifier: Apache-2.0
// An exchange between nodes, through the calls of C. The nodes are processes' names for this machine (SHMEM_HOST_ID).
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/fd.hpp"
#include "tests/unit/kv/exchange_nodes.hpp"

namespace {

using exchange_test::address_of;
using exchange_test::connected_member;
using exchange_test::exchange_name;
using exchange_test::key_of;
using exchange_test::kSecond;
using exchange_test::Member;
using exchange_test::member_on_node;
using exchange_test::network_of;
using ::testing::HasSubstr;

/// Byte i of block `block`.
char byte_of(std::size_t block, std::size_t i) {
  return static_cast<char>((block * 131 + i * 7 + i / 251) & 0xff);
}

void fill(Member& owner, std::size_t block, std::size_t offset, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    owner.memory()[offset + i] = byte_of(block, i);
  }
}

bool is_block(const std::string& bytes, std::size_t block) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != byte_of(block, i)) {
      return false;
    }
  }
  return true;
}

class ExchangeNodes : public exchange_test::NodesTest {
 protected:
  /// An owner on a node of its own, and a reader that is connected with it.
  void make_pair(int number, const exchange_test::Options& options = {},
                 std::uint32_t answer_ms = exchange_test::kLongMs) {
    const std::string name = exchange_name(number);
    owner_ = connected_member(name, "node 1", "", options);
    owner_->make_memory(std::size_t{4} << 20);
    reader_ = connected_member(name, "node 2", address_of(*owner_), {}, answer_ms);
  }
};

TEST_F(ExchangeNodes, PullsBlocksOfAllSizesWithOneCall) {
  make_pair(1);
  const std::vector<std::size_t> sizes{1, 1024, 4096, 61'000, 65'536, 100'001, 1 << 20};
  std::vector<std::string> keys;
  std::vector<shmemx_exchange_key_t> names;
  std::size_t offset = 0;
  for (std::size_t block = 0; block < 140; ++block) {  // more than one message finds, and more than one request pulls
    const std::size_t bytes = block < sizes.size() ? sizes[block] : 1024;
    fill(*owner_, block, offset, bytes);
    keys.push_back("block " + std::to_string(block));
    ASSERT_EQ(owner_->publish(keys.back(), offset, bytes, block + 1), 0);
    offset += bytes;
  }
  for (const auto& key : keys) {
    names.push_back(key_of(key));
  }
  std::vector<shmemx_exchange_block_t> blocks(keys.size());
  ASSERT_EQ(shmemx_exchange_find(reader_->get(), names.data(), names.size(), 0, 0, blocks.data()), 140);
  std::vector<std::string> room;
  std::vector<void*> destinations;
  for (const auto& block : blocks) {
    room.emplace_back(block.bytes, '?');
  }
  for (auto& bytes : room) {
    destinations.push_back(bytes.data());
  }
  std::vector<std::int32_t> statuses(blocks.size(), 1);
  ASSERT_EQ(
      shmemx_exchange_pull(reader_->get(), blocks.data(), destinations.data(), blocks.size(), statuses.data(), nullptr),
      0)
      << shmemx_error_text();
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    EXPECT_EQ(statuses[block], 0);
    EXPECT_EQ(blocks[block].layout, block + 1);
    EXPECT_GE(blocks[block].seat, 64U);
    EXPECT_TRUE(is_block(room[block], block)) << "block " << block;
  }
  EXPECT_EQ(reader_->stats().pulled_blocks, 140U);
  EXPECT_EQ(reader_->stats().pulled_bytes, offset);
}

TEST_F(ExchangeNodes, PullsInTheBackground) {
  make_pair(2);
  fill(*owner_, 5, 0, 200'000);
  ASSERT_EQ(owner_->publish("key", 0, 200'000), 0);
  const auto block = reader_->find("key");
  std::string bytes(block.bytes, '?');
  void* const to = bytes.data();
  shmemx_exchange_transfer_t* transfer = nullptr;
  ASSERT_EQ(shmemx_exchange_pull(reader_->get(), &block, &to, 1, nullptr, &transfer), 0);
  EXPECT_EQ(shmemx_exchange_wait(transfer, 60 * kSecond), 0) << shmemx_error_text();
  shmemx_exchange_transfer_free(transfer);
  EXPECT_TRUE(is_block(bytes, 5));
}

TEST_F(ExchangeNodes, EveryMemberReadsFromEveryOther) {
  const std::string name = exchange_name(3);
  const auto first = connected_member(name, "node 1");
  const auto second = connected_member(name, "node 2", address_of(*first));
  const auto third = connected_member(name, "node 3", address_of(*first));  // the first tells it of the second
  const std::array<Member*, 3> members{first.get(), second.get(), third.get()};
  for (std::size_t i = 0; i < members.size(); ++i) {
    members[i]->make_memory(1 << 20);
    fill(*members[i], i, 0, 5000);
    ASSERT_EQ(members[i]->publish("of " + std::to_string(i), 0, 5000), 0);
  }
  for (Member* const reader : members) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (members[i] == reader) {
        continue;
      }
      std::string bytes;
      const auto block = reader->find_soon("of " + std::to_string(i));
      ASSERT_EQ(block.status, 0);
      ASSERT_EQ(reader->pull(block, bytes), 0);
      EXPECT_TRUE(is_block(bytes, i));
    }
    EXPECT_EQ(reader->stats().members, 2U);
    EXPECT_EQ(reader->stats().readers, 2U);
  }
}

TEST_F(ExchangeNodes, MembersOfOneNodeNeedNoLink) {
  const std::string name = exchange_name(4);
  const auto far_owner = connected_member(name, "node 1");
  const auto owner = connected_member(name, "node 2", address_of(*far_owner));
  const auto reader = connected_member(name, "node 2", address_of(*far_owner) + "," + address_of(*owner));
  far_owner->make_memory(1 << 20);
  owner->make_memory(1 << 20);
  ASSERT_EQ(owner->publish("key", 0, 100), 0);
  ASSERT_EQ(far_owner->publish("key", 0, 100), 0);
  ASSERT_EQ(far_owner->publish("far", 0, 100), 0);
  EXPECT_LT(reader->find_soon("key").seat, 64U) << "of two owners the one on this node";
  EXPECT_GE(reader->find_soon("far").seat, 64U);
  EXPECT_EQ(reader->stats().members, 2U);
  EXPECT_EQ(reader->stats().refused, 0U);
  EXPECT_EQ(owner->stats().refused, 0U);
}

TEST_F(ExchangeNodes, StalePullsFail) {
  make_pair(5);
  fill(*owner_, 1, 0, 300'000);
  ASSERT_EQ(owner_->publish("key", 0, 300'000), 0);
  const auto block = reader_->find("key");
  ASSERT_EQ(owner_->withdraw("key"), 0);
  std::string bytes;
  EXPECT_EQ(reader_->pull(block, bytes), -ESTALE);
  EXPECT_EQ(reader_->find("key").status, -ENOENT);
  fill(*owner_, 2, 0, 300'000);
  ASSERT_EQ(owner_->publish("key", 0, 300'000), 0);
  EXPECT_EQ(reader_->pull(block, bytes), -ESTALE) << "the slot is used again, with another epoch";
  ASSERT_EQ(reader_->pull(reader_->find("key"), bytes), 0);
  EXPECT_TRUE(is_block(bytes, 2));
  EXPECT_EQ(reader_->stats().failed_stale, 2U);
}

TEST_F(ExchangeNodes, LeasesDelayTheOwnerUntilTheyEnd) {
  make_pair(6, {.leases = 2, .lease_ms = 60'000});
  for (const std::string key : {"a", "b", "c"}) {
    ASSERT_EQ(owner_->publish(key, 0, 1000), 0);
  }
  auto a = reader_->find("a", 0, 60'000);
  const auto b = reader_->find("b", 0, 60'000);
  ASSERT_EQ(a.status, 0);
  ASSERT_EQ(b.status, 0);
  EXPECT_EQ(reader_->find("c", 0, 1000).status, -EDQUOT);
  EXPECT_EQ(owner_->withdraw("a"), -EBUSY);
  EXPECT_EQ(reader_->release(a), 0);
  EXPECT_EQ(owner_->withdraw("a", 60 * kSecond), 0);
  EXPECT_EQ(owner_->withdraw("b"), -EBUSY);
  reader_->close();  // its leases end
  EXPECT_EQ(owner_->withdraw("b", 60 * kSecond), 0);
  EXPECT_EQ(owner_->stats().leases_expired, 0U);
}

TEST_F(ExchangeNodes, LeasesExpire) {
  make_pair(7, {.lease_ms = 50});
  fill(*owner_, 1, 0, 1000);
  shmemx_exchange_block_t block{};
  for (int i = 0; i < 20 && owner_->stats().leases_expired == 0; ++i) {  // a lease may be over before the withdraw
    ASSERT_EQ(owner_->publish("key", 0, 1000), 0);
    block = reader_->find("key", 0, 60'000);
    ASSERT_EQ(block.status, 0);
    EXPECT_EQ(owner_->withdraw("key", 60 * kSecond), 0) << "not before lease_ms of the owner, but then";
  }
  fill(*owner_, 2, 0, 1000);
  std::string bytes;
  EXPECT_EQ(reader_->pull(block, bytes), -ESTALE);
  EXPECT_EQ(owner_->stats().leases_expired, 1U);
}

TEST_F(ExchangeNodes, ABlockWithAnotherLayoutIsToldFromNone) {
  make_pair(17);
  ASSERT_EQ(owner_->publish("key", 0, 1000, 7), 0);
  EXPECT_EQ(reader_->find("key", 8).status, -EPROTOTYPE);
  EXPECT_EQ(reader_->find("another key", 8).status, -ENOENT);
  EXPECT_EQ(reader_->find("key", 7).status, 0);
  // Only one of two members has this layout: it is found, in whatever order they are asked.
  const auto second = connected_member(exchange_name(17), "node 3", address_of(*owner_));
  second->make_memory(1 << 20);
  ASSERT_EQ(second->publish("key", 0, 1000, 8), 0);
  ASSERT_EQ(second->publish("seen", 0, 1000), 0);
  ASSERT_EQ(reader_->find_soon("seen").status, 0);
  EXPECT_EQ(reader_->find("key", 8).layout, 8U);
  EXPECT_EQ(reader_->find("key", 7).layout, 7U);
  EXPECT_EQ(reader_->find("key", 9).status, -EPROTOTYPE);
}

TEST_F(ExchangeNodes, AFileThatShrinksFailsOnlyItsPulls) {
  make_pair(18);
  const base::UniqueFd file(::memfd_create("mine", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 1 << 20), 0);
  shmemx_memory_t memory{.address = nullptr, .bytes = 1 << 20, .fd = file.get(), .offset = 0};
  std::uint32_t region = 0;
  ASSERT_EQ(shmemx_exchange_register(owner_->get(), &memory, &region), 0) << shmemx_error_text();
  const std::string key = "of the file";
  shmemx_exchange_entry_t entry{
      .key = key_of(key), .region = region, .status = 1, .offset = 0, .bytes = 200'000, .layout = 0};
  ASSERT_EQ(shmemx_exchange_publish(owner_->get(), &entry, 1), 1);
  fill(*owner_, 3, 0, 200'000);
  ASSERT_EQ(owner_->publish("of the memory", 0, 200'000), 0);
  std::string bytes;
  const auto block = reader_->find("of the file");
  EXPECT_EQ(reader_->pull(block, bytes), 0);
  EXPECT_EQ(bytes, std::string(200'000, '\0'));
  // The second part of the block, of which the owner sends several, is not there any more.
  ASSERT_EQ(::ftruncate(file.get(), 65'536), 0);
  EXPECT_EQ(reader_->pull(block, bytes), -EIO);
  EXPECT_EQ(reader_->stats().failed_other, 1U);
  EXPECT_EQ(reader_->pull(reader_->find("of the memory"), bytes), 0);
  EXPECT_TRUE(is_block(bytes, 3));
}

TEST_F(ExchangeNodes, BytesThatChangeWhileTheyArePulledNeverArrive) {
  make_pair(8, {.lease_ms = 1});
  constexpr std::size_t kBytes = 500'000;
  std::atomic<bool> stop{false};
  std::atomic<int> microseconds{300};  // that the block lives: about as long as a pull takes, however long that is
  std::thread changes([&] {
    for (std::size_t turn = 0; !stop; ++turn) {
      std::memset(owner_->memory(), static_cast<int>('a' + turn % 26), kBytes);
      EXPECT_EQ(owner_->publish("key", 0, kBytes, 'a' + turn % 26), 0);
      std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
      EXPECT_EQ(owner_->withdraw("key", 60 * kSecond), 0);
    }
  });
  int stale = 0;
  int right = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{120};
  while ((stale < 20 || right < 20) && std::chrono::steady_clock::now() < end) {
    const auto block = reader_->find("key");
    if (block.status != 0) {
      continue;
    }
    std::string bytes;
    const int code = reader_->pull(block, bytes);
    ASSERT_TRUE(code == 0 || code == -ESTALE) << shmemx_error_text();
    (code == 0 ? right : stale) += 1;
    microseconds = code == 0 ? microseconds / 2 : std::min(2 * microseconds + 1, 1'000'000);
    if (code == 0) {
      ASSERT_EQ(bytes, std::string(kBytes, static_cast<char>(block.layout)));
    }
  }
  stop = true;
  changes.join();
  EXPECT_GT(stale, 0);
  EXPECT_GT(right, 0);
}

TEST_F(ExchangeNodes, ListsAndDescribesMembers) {
  make_pair(9);
  std::vector<std::string> keys;
  for (int i = 0; i < 300; ++i) {
    keys.push_back("key " + std::to_string(i));
    ASSERT_EQ(owner_->publish(keys.back(), 0, 100), 0);
  }
  shmemx_exchange_member_t other{};
  ASSERT_EQ(shmemx_exchange_members(reader_->get(), &other, 1), 1);
  EXPECT_EQ(other.blocks, 300U);
  EXPECT_EQ(other.bytes, 30'000U);
  EXPECT_EQ(other.pid, static_cast<std::uint32_t>(::getpid()));
  std::vector<shmemx_exchange_name_t> names(400);
  std::vector<shmemx_exchange_block_t> blocks(400);
  std::uint64_t cursor = 0;
  ASSERT_EQ(shmemx_exchange_list(reader_->get(), other.seat, &cursor, names.data(), blocks.data(), 250), 250);
  ASSERT_EQ(shmemx_exchange_list(reader_->get(), other.seat, &cursor, names.data() + 250, blocks.data() + 250, 150),
            50);
  EXPECT_EQ(shmemx_exchange_list(reader_->get(), other.seat, &cursor, names.data(), blocks.data(), 10), 0);
  for (std::size_t i = 0; i < 300; ++i) {
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(names[i].data), names[i].bytes), keys[i]);
  }
  std::string bytes;
  EXPECT_EQ(reader_->pull(blocks[299], bytes), 0) << "what is listed can be pulled";
  EXPECT_EQ(shmemx_exchange_list(reader_->get(), other.seat + 1, &cursor, names.data(), blocks.data(), 1), -ENOENT);
}

TEST_F(ExchangeNodes, MemoryThatIsRegisteredBeforeAndAfter) {
  const std::string name = exchange_name(10);
  const auto owner = member_on_node(name, "node 1");
  owner->make_memory(1 << 20);
  fill(*owner, 1, 0, 1000);
  ASSERT_EQ(owner->publish("before", 0, 1000), 0);
  const std::string nobody;
  const auto network = network_of(nobody);
  ASSERT_EQ(shmemx_exchange_connect(owner->get(), &network), 0) << shmemx_error_text();
  const auto reader = connected_member(name, "node 2", address_of(*owner));
  owner->make_memory(1 << 20);
  fill(*owner, 2, 0, 1000);
  ASSERT_EQ(owner->publish("after", 0, 1000), 0);
  std::string bytes;
  ASSERT_EQ(reader->pull(reader->find("before"), bytes), 0);
  EXPECT_TRUE(is_block(bytes, 1));
  ASSERT_EQ(reader->pull(reader->find("after"), bytes), 0);
  EXPECT_TRUE(is_block(bytes, 2));
  const auto block = reader->find("after");
  ASSERT_EQ(owner->withdraw("after"), 0);
  ASSERT_EQ(shmemx_exchange_unregister(owner->get(), owner->region()), 0);
  EXPECT_EQ(reader->pull(block, bytes), -ESTALE);
}

TEST_F(ExchangeNodes, AnOwnerThatLeavesAndReturns) {
  const std::string name = exchange_name(11);
  make_pair(11);
  ASSERT_EQ(owner_->publish("key", 0, 1000), 0);
  const auto block = reader_->find("key");
  owner_->close();
  std::string bytes;
  int code = 0;
  for (int i = 0; i < 5'000 && code == 0; ++i) {  // until the reader has noticed
    code = reader_->pull(block, bytes);
  }
  EXPECT_EQ(code, -EOWNERDEAD);
  EXPECT_EQ(reader_->find("key").status, -ENOENT);
  const auto again = connected_member(name, "node 1", address_of(*reader_));
  again->make_memory(1 << 20);
  ASSERT_EQ(again->publish("key", 0, 1000), 0);
  EXPECT_EQ(reader_->pull(reader_->find_soon("key"), bytes), 0);
  EXPECT_EQ(reader_->pull(block, bytes), -EOWNERDEAD) << "of its earlier start";
}

TEST_F(ExchangeNodes, ManyThreadsPullAtOnce) {
  make_pair(12);
  for (std::size_t block = 0; block < 64; ++block) {
    fill(*owner_, block, block * 10'000, 10'000);
    ASSERT_EQ(owner_->publish("block " + std::to_string(block), block * 10'000, 10'000), 0);
  }
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&] {
      std::vector<std::string> room(64, std::string(10'000, '?'));
      std::vector<shmemx_exchange_block_t> blocks;
      std::vector<void*> destinations;
      for (std::size_t block = 0; block < 64; ++block) {
        blocks.push_back(reader_->find("block " + std::to_string(block)));
        destinations.push_back(room[block].data());
      }
      if (shmemx_exchange_pull(reader_->get(), blocks.data(), destinations.data(), 64, nullptr, nullptr) != 0) {
        ++wrong;
      }
      for (std::size_t block = 0; block < 64; ++block) {
        wrong += is_block(room[block], block) ? 0 : 1;
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
}

TEST_F(ExchangeNodes, AnotherSecretIsRefused) {
  make_pair(13);
  const auto stranger = member_on_node(exchange_name(13), "node 3");
  const std::string members = address_of(*owner_);
  const auto network = network_of(members, "another secret");
  EXPECT_EQ(shmemx_exchange_connect(stranger->get(), &network), -EACCES);
  EXPECT_THAT(stranger->error(), HasSubstr("does not know the secret of this exchange"));
  EXPECT_THAT(stranger->error(), HasSubstr(members));
  EXPECT_EQ(stranger->stats().members, 0U);
  const auto other_exchange = member_on_node(exchange_name(14), "node 3");
  const auto good_secret = network_of(members);
  EXPECT_EQ(shmemx_exchange_connect(other_exchange->get(), &good_secret), -EACCES) << "it is of another exchange";
  for (int i = 0; i < 5'000 && owner_->stats().refused < 2; ++i) {
    ::usleep(1000);
  }
  EXPECT_GE(owner_->stats().refused, 2U);
  EXPECT_EQ(owner_->stats().readers, 1U);
  EXPECT_EQ(reader_->find("key").status, -ENOENT) << "the others go on";
}

TEST_F(ExchangeNodes, WrongArguments) {
  const auto member = member_on_node(exchange_name(15), "node 1");
  char text[64];
  EXPECT_EQ(shmemx_exchange_address(member->get(), text, sizeof text), -ENOTCONN);
  EXPECT_EQ(shmemx_exchange_connect(member->get(), nullptr), -EINVAL);
  std::string members = "127.0.0.1";
  auto network = network_of(members);
  EXPECT_EQ(shmemx_exchange_connect(member->get(), &network), -EINVAL);
  EXPECT_THAT(member->error(), HasSubstr("a port is missing"));
  members = "";
  network = network_of(members, nullptr);
  EXPECT_EQ(shmemx_exchange_connect(member->get(), &network), -EINVAL);
  EXPECT_THAT(member->error(), HasSubstr("SHMEM_UID_SECRET"));
  network = network_of(members, "a secret", 600'001);
  EXPECT_EQ(shmemx_exchange_connect(member->get(), &network), -EINVAL);
  network = network_of(members);
  network.reserved[4] = 1;
  EXPECT_EQ(shmemx_exchange_connect(member->get(), &network), -EINVAL);
  network = network_of(members);
  network.listen = "192.0.2.1:0";
  EXPECT_EQ(shmemx_exchange_connect(member->get(), &network), -EADDRNOTAVAIL);
  const auto other = connected_member(exchange_name(15), "node 2");
  const std::string taken = address_of(*other);
  network.listen = taken.c_str();
  EXPECT_EQ(shmemx_exchange_connect(member->get(), &network), -EADDRINUSE);
  EXPECT_THAT(member->error(), HasSubstr(taken));
  EXPECT_EQ(shmemx_exchange_address(member->get(), text, sizeof text), -ENOTCONN) << "and it can be tried again";
  members = "127.0.0.1:1";  // nobody is there: it may come later
  network = network_of(members);
  EXPECT_EQ(shmemx_exchange_connect(member->get(), &network), 0) << member->error();
  EXPECT_EQ(shmemx_exchange_connect(member->get(), &network), -EISCONN);
  EXPECT_EQ(shmemx_exchange_address(member->get(), text, 5), -ERANGE);
}

TEST_F(ExchangeNodes, WithoutDescriptorsConnectFailsAndCanBeRepeated) {
  const std::string name = exchange_name(180);
  const auto member = member_on_node(name, "node 1");
  const std::string members;
  const auto network = network_of(members);
  for (const int more : {0, 1, 10, 30}) {
    const exchange_test::FewDescriptors few(more);
    EXPECT_EQ(shmemx_exchange_connect(member->get(), &network), -EMFILE) << more;
    EXPECT_THAT(member->error(), HasSubstr("raise the limit of open files (ulimit -n)"));
  }
  EXPECT_EQ(shmemx_exchange_connect(member->get(), &network), 0) << shmemx_error_text();
  const auto other = connected_member(name, "node 2", address_of(*member));
  EXPECT_EQ(other->stats().members, 1U);
}

TEST_F(ExchangeNodes, MemoryThatCannotBeSharedIsNotRegistered) {
  const auto member = connected_member(exchange_name(17), "node 1");
  shmemx_memory_t memory{.address = nullptr, .bytes = 4096, .fd = -1, .offset = 0};
  std::uint32_t region = 0;
  {
    const exchange_test::FewDescriptors few(1);  // for this member, and not for readers on other nodes
    EXPECT_EQ(shmemx_exchange_register(member->get(), &memory, &region), -EMFILE) << shmemx_error_text();
    EXPECT_EQ(memory.address, nullptr) << "there is no such memory any more";
  }
  EXPECT_EQ(shmemx_exchange_register(member->get(), &memory, &region), 0) << shmemx_error_text();
  EXPECT_NE(memory.address, nullptr);
}

TEST(ExchangeNodesAbsent, SaysThatUcxIsMissing) {
  if (KV_WITH_UCX) {
    return;  // not skipped: the other tests run then
  }
  const auto member = member_on_node(exchange_name(16), "node 1");
  const std::string nobody;
  const auto network = network_of(nobody);
  EXPECT_EQ(shmemx_exchange_connect(member->get(), &network), -ENOTSUP);
  EXPECT_THAT(member->error(), HasSubstr("built without UCX"));
}

}  // namespace
