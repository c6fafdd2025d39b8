// SPDX-License-Identifier: Apache-2.0
// The calls of shmemx_exchange.h, between members of one process.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <shmemx.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "base/memfd.hpp"
#include "shmem/memory/memory_limit.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/unit/kv/exchange_fixture.hpp"

namespace {

using exchange_test::exchange_name;
using exchange_test::key_of;
using exchange_test::kSecond;
using exchange_test::Member;
using exchange_test::Options;
using ::testing::HasSubstr;

TEST(ExchangeCalls, ABlockIsPulledByItsKey) {
  Member owner(exchange_name(1));
  owner.make_memory(4096);
  std::strcpy(owner.memory() + 100, "twelve bytes");
  ASSERT_EQ(owner.publish("key", 100, 12, 7), 0);
  Member reader(exchange_name(1));
  const auto block = reader.find("key", 7);
  ASSERT_EQ(block.status, 0);
  EXPECT_EQ(block.bytes, 12U);
  EXPECT_EQ(block.layout, 7U);
  std::string bytes;
  EXPECT_EQ(reader.pull(block, bytes), 0);
  EXPECT_EQ(bytes, "twelve bytes");
  EXPECT_EQ(reader.stats().pulled_bytes, 12U);
  EXPECT_EQ(reader.stats().pulled_blocks, 1U);
  EXPECT_EQ(owner.stats().readers, 1U);
}

/// Whether a thread of this process waits in the kernel.
bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  const auto name_end = text.rfind(") ");
  return name_end != std::string::npos && text[name_end + 2] == 'S';
}

TEST(ExchangeCalls, TwoThreadsThatWithdrawAKeyLeaveTheNextBlockOfIt) {
  const std::string name = exchange_name(40);
  Member owner(name, {.lease_ms = 20'000});
  owner.make_memory(4096);
  Member reader(name);
  for (int turn = 0; turn < 20; ++turn) {
    ASSERT_EQ(owner.publish("key", 0, 8), 0);
    reader.find_soon("key");
    auto leased = reader.find("key", 0, 20'000);
    ASSERT_EQ(leased.status, 0);
    std::array<std::atomic<pid_t>, 2> threads{};
    const auto withdraw = [&](std::size_t i) {
      threads[i] = ::gettid();
      EXPECT_EQ(owner.withdraw("key", 20 * kSecond), 0);
    };
    std::thread one(withdraw, 0);
    std::thread other(withdraw, 1);
    while (reader.find("key").status == 0 || !is_asleep(threads[0]) || !is_asleep(threads[1])) {
      ::usleep(5000);
    }
    reader.release(leased);
    while (owner.publish("key", 8, 8) != 0) {
      std::this_thread::yield();
    }
    one.join();
    other.join();
    EXPECT_EQ(reader.find("key").status, 0) << turn;
    EXPECT_EQ(owner.withdraw("key"), 0);
  }
}

TEST(ExchangeCalls, MembersThatCameEarlierSeeLaterOnesAndTheirMemory) {
  Member reader(exchange_name(2));
  Member owner(exchange_name(2));
  owner.make_memory(4096);
  owner.memory()[0] = 'x';
  ASSERT_EQ(owner.publish("key", 0, 1), 0);
  std::string bytes;
  EXPECT_EQ(reader.pull(reader.find_soon("key"), bytes), 0);
  EXPECT_EQ(bytes, "x");
  // Further memory, which the reader learns of by pulling from it.
  owner.make_memory(4096);
  owner.memory()[9] = 'y';
  ASSERT_EQ(owner.publish("other", 9, 1), 0);
  EXPECT_EQ(reader.pull(reader.find("other"), bytes), 0);
  EXPECT_EQ(bytes, "y");
}

TEST(ExchangeCalls, FindTellsWhyThereIsNothing) {
  Member owner(exchange_name(3));
  owner.make_memory(4096);
  ASSERT_EQ(owner.publish("key", 0, 8, 7), 0);
  Member reader(exchange_name(3));
  EXPECT_EQ(reader.find("no key").status, -ENOENT);
  EXPECT_EQ(reader.find("key", 8).status, -EPROTOTYPE);
  EXPECT_EQ(reader.find("").status, -EINVAL);
  EXPECT_EQ(reader.find(std::string(129, 'k')).status, -EINVAL);
  EXPECT_EQ(owner.find("key").status, -ENOENT) << "its own";
  EXPECT_EQ(reader.stats().missed, 4U);
}

TEST(ExchangeCalls, PublishTellsWhatIsWrong) {
  Member owner(exchange_name(4), {.blocks = 2});
  owner.make_memory(4096);
  EXPECT_EQ(owner.publish("", 0, 8), -EINVAL);
  EXPECT_EQ(owner.publish("a", 0, 0), -EINVAL);
  EXPECT_EQ(owner.publish("a", 4096, 1), -EINVAL);
  EXPECT_EQ(owner.publish("a", 0, 4097), -EINVAL);
  EXPECT_EQ(owner.publish("a", UINT64_MAX, 2), -EINVAL);
  EXPECT_EQ(owner.publish("a", 0, 4096), 0);
  EXPECT_EQ(owner.publish("a", 0, 8), -EEXIST);
  EXPECT_EQ(owner.publish("b", 0, 8), 0);
  EXPECT_EQ(owner.publish("c", 0, 8), -ENOSPC);
  const std::string other = "c";
  shmemx_exchange_entry_t entry{.key = key_of(other), .region = 99, .status = 0, .offset = 0, .bytes = 1, .layout = 0};
  EXPECT_EQ(shmemx_exchange_publish(owner.get(), &entry, 1), 0);
  EXPECT_EQ(entry.status, -ENOENT);
  EXPECT_EQ(owner.withdraw("c"), -ENOENT);
  EXPECT_EQ(owner.withdraw(""), -EINVAL);
  EXPECT_EQ(owner.stats().published, 2U);
  EXPECT_EQ(owner.stats().bytes, 4104U);
}

TEST(ExchangeCalls, AWithdrawnBlockIsStale) {
  Member owner(exchange_name(5));
  owner.make_memory(4096);
  ASSERT_EQ(owner.publish("key", 0, 8), 0);
  Member reader(exchange_name(5));
  const auto block = reader.find("key");
  EXPECT_EQ(owner.withdraw("key"), 0);
  std::string bytes;
  EXPECT_EQ(reader.pull(block, bytes), -ESTALE);
  EXPECT_EQ(owner.publish("key", 0, 8), 0);
  EXPECT_EQ(reader.pull(block, bytes), -ESTALE) << "another block of the same key";
  EXPECT_EQ(reader.pull(reader.find("key"), bytes), 0);
  EXPECT_EQ(reader.stats().failed_stale, 2U);
}

TEST(ExchangeCalls, ALeaseKeepsTheOwnerFromReusingABlock) {
  Member owner(exchange_name(6), {.lease_ms = 60'000});
  owner.make_memory(4096);
  ASSERT_EQ(owner.publish("key", 0, 8), 0);
  Member reader(exchange_name(6));
  auto block = reader.find("key", 0, 60'000);
  ASSERT_EQ(block.status, 0);
  ASSERT_NE(block.lease, 0U);
  EXPECT_EQ(owner.withdraw("key"), -EBUSY);
  EXPECT_THAT(owner.error(), HasSubstr("1 of 1 block is leased"));
  EXPECT_EQ(owner.publish("key", 0, 8), -EBUSY);
  EXPECT_EQ(reader.find("key").status, -ENOENT);
  EXPECT_EQ(reader.release(block), 0);
  EXPECT_EQ(block.lease, 0U);
  EXPECT_EQ(owner.withdraw("key"), 0);
  EXPECT_EQ(owner.stats().leases_expired, 0U);
  EXPECT_EQ(owner.publish("key", 0, 8), 0);
}

TEST(ExchangeCalls, ALeaseExpires) {
  Member owner(exchange_name(7), {.lease_ms = 50});
  owner.make_memory(4096);
  Member reader(exchange_name(7));
  shmemx_exchange_block_t block{};
  for (int i = 0; i < 20 && owner.stats().leases_expired == 0; ++i) {  // a lease may be over before the withdraw
    ASSERT_EQ(owner.publish("key", 0, 8), 0);
    block = reader.find("key", 0, 60'000);  // longer than the owner allows
    ASSERT_EQ(block.status, 0);
    EXPECT_EQ(owner.withdraw("key", 60 * kSecond), 0);
  }
  EXPECT_EQ(owner.stats().leases_expired, 1U);
  std::string bytes;
  EXPECT_EQ(reader.pull(block, bytes), -ESTALE);
  EXPECT_EQ(reader.release(block), 0);
  // A lease that was over before the withdraw, and one that is released, have not expired in it.
  ASSERT_EQ(owner.publish("key", 0, 8), 0);
  block = reader.find("key", 0, 1);
  ::usleep(100'000);
  EXPECT_EQ(owner.withdraw("key", 60 * kSecond), 0);
  EXPECT_EQ(owner.stats().leases_expired, 1U);
}

TEST(ExchangeCalls, AReaderThatLeavesHasNoLeases) {
  Member owner(exchange_name(8), {.lease_ms = 60'000});
  owner.make_memory(4096);
  ASSERT_EQ(owner.publish("key", 0, 8), 0);
  Member reader(exchange_name(8));
  ASSERT_NE(reader.find("key", 0, 60'000).lease, 0U);
  EXPECT_EQ(owner.withdraw("key"), -EBUSY);
  reader.close();
  EXPECT_EQ(owner.withdraw("key", 60 * kSecond), 0);
}

TEST(ExchangeCalls, AReaderHasAQuotaOfLeases) {
  Member owner(exchange_name(9), {.leases = 2, .lease_ms = 60'000});
  owner.make_memory(4096);
  for (const char* key : {"a", "b", "c"}) {
    ASSERT_EQ(owner.publish(key, 0, 8), 0);
  }
  Member reader(exchange_name(9));
  auto first = reader.find("a", 0, 60'000);
  ASSERT_NE(reader.find("b", 0, 60'000).lease, 0U);
  const auto over = reader.find("c", 0, 60'000);
  EXPECT_EQ(over.status, -EDQUOT);
  EXPECT_EQ(over.lease, 0U);
  std::string bytes;
  EXPECT_EQ(reader.pull(over, bytes), 0) << "the pull has a lease of its own";
  EXPECT_EQ(reader.release(first), 0);
  EXPECT_NE(reader.find("c", 0, 60'000).lease, 0U);
  EXPECT_EQ(reader.stats().over_quota, 1U);
}

std::vector<std::string> memory_warnings;

void keep_memory_warning(int /*level*/, const char* text) {
  memory_warnings.emplace_back(text);
}

TEST(ExchangeCalls, WarnsOnceOfMemoryThatTheMachineDoesNotHave) {
  if (test_support::kEmulated) {
    GTEST_SKIP() << "qemu-user does not map so much";
  }
  shmemx_set_logger(keep_memory_warning);
  Member owner(exchange_name(70));
  const std::size_t most = shmem::memory_limit().bytes / 4096 * 4096;
  owner.make_memory(4096);
  EXPECT_EQ(memory_warnings.size(), 0U);
  for (int i = 0; i < 2; ++i) {
    owner.make_memory(most + 4096);
  }
  shmemx_set_logger(nullptr);
  ASSERT_EQ(memory_warnings.size(), 1U);
  EXPECT_THAT(memory_warnings[0],
              testing::AllOf(HasSubstr(exchange_name(70)), HasSubstr("iB for blocks is more than the "),
                             HasSubstr("ask for less")));
}

TEST(ExchangeCalls, WarnsOfMemoryOfTheCallerThatTheMachineDoesNotHave) {
  memory_warnings.clear();
  shmemx_set_logger(keep_memory_warning);
  Member owner(exchange_name(71));
  const std::size_t more = shmem::memory_limit().bytes / 4096 * 4096 + 4096;
  // A file of this size takes no memory yet: Python's regions and stores are made so.
  const auto file = *base::create_memfd("memory", more, base::MemfdPages::kUsual, base::MemfdSeals::kOpen);
  shmemx_memory_t memory{.address = nullptr, .bytes = more, .fd = file.get(), .offset = 0};
  std::uint32_t region = 0;
  EXPECT_EQ(shmemx_exchange_register(owner.get(), &memory, &region), 0) << owner.error();
  shmemx_set_logger(nullptr);
  ASSERT_EQ(memory_warnings.size(), 1U);
  EXPECT_THAT(memory_warnings[0], HasSubstr("iB for blocks is more than the "));
}

TEST(ExchangeCalls, AnOwnerOverItsQuotaGivesWayToAnotherOne) {
  Member first(exchange_name(63), {.leases = 1, .lease_ms = 60'000});
  Member second(exchange_name(63));
  for (Member* const owner : {&first, &second}) {
    owner->make_memory(4096);
    ASSERT_EQ(owner->publish("a", 0, 8), 0);
    ASSERT_EQ(owner->publish("b", 8, 8), 0);
  }
  ASSERT_EQ(second.publish("c", 8, 8), 0);
  Member reader(exchange_name(63));
  ASSERT_EQ(reader.find_soon("c").status, 0);
  const auto from_first = reader.find("a", 0, 60'000);
  EXPECT_EQ(from_first.seat, 0U);
  ASSERT_NE(from_first.lease, 0U);
  const auto from_second = reader.find("b", 0, 60'000);
  EXPECT_EQ(from_second.status, 0);
  EXPECT_EQ(from_second.seat, 1U);
  EXPECT_NE(from_second.lease, 0U);
  EXPECT_EQ(reader.stats().over_quota, 0U);
  second.close();
  for (int i = 0; i < 5'000 && reader.stats().members > 1; ++i) {
    ::usleep(1000);
  }
  EXPECT_EQ(reader.find("b", 0, 60'000).status, -EDQUOT) << "of the first alone";
}

TEST(ExchangeCalls, ABlockOfAMemberThatHasLeftCannotBePulled) {
  Member owner(exchange_name(10));
  owner.make_memory(4096);
  ASSERT_EQ(owner.publish("key", 0, 8), 0);
  Member reader(exchange_name(10));
  const auto block = reader.find("key");
  owner.close();
  for (int i = 0; i < 5'000 && reader.find("key").status == 0; ++i) {
    ::usleep(1000);
  }
  std::string bytes;
  EXPECT_EQ(reader.pull(block, bytes), -EOWNERDEAD);
  EXPECT_THAT(reader.error(), HasSubstr("of the member on seat 0"));
  EXPECT_EQ(reader.stats().failed_dead, 1U);
  EXPECT_EQ(reader.stats().members, 0U);
}

/// Blocks of one member, block i of the byte 'a' + i.
struct ManyBlocks {
  explicit ManyBlocks(Member& owner, std::size_t count, std::size_t bytes) {
    owner.make_memory(count * bytes);
    for (std::size_t i = 0; i < count; ++i) {
      std::memset(owner.memory() + i * bytes, static_cast<int>('a' + i % 26), bytes);
      names.push_back("block " + std::to_string(i));
      EXPECT_EQ(owner.publish(names.back(), i * bytes, bytes), 0);
    }
    for (const auto& name : names) {
      keys.push_back(key_of(name));
    }
    blocks.resize(count);
    room.assign(count * bytes, '?');
    for (std::size_t i = 0; i < count; ++i) {
      destinations.push_back(room.data() + i * bytes);
    }
    statuses.assign(count, 1);
  }
  [[nodiscard]] bool arrived(std::size_t i) const {
    const std::size_t bytes = room.size() / blocks.size();
    return room.substr(i * bytes, bytes) == std::string(bytes, static_cast<char>('a' + i % 26));
  }
  std::vector<std::string> names;
  std::vector<shmemx_exchange_key_t> keys;
  std::vector<shmemx_exchange_block_t> blocks;
  std::string room;
  std::vector<void*> destinations;
  std::vector<std::int32_t> statuses;
};

TEST(ExchangeCalls, ManyBlocksArePulledWithOneCall) {
  Member owner(exchange_name(11));
  ManyBlocks many(owner, 100, 3000);
  Member reader(exchange_name(11));
  ASSERT_EQ(shmemx_exchange_find(reader.get(), many.keys.data(), 100, 0, 0, many.blocks.data()), 100);
  ASSERT_EQ(owner.withdraw(many.names[70]), 0);
  many.destinations[3] = nullptr;
  EXPECT_EQ(shmemx_exchange_pull(reader.get(), many.blocks.data(), many.destinations.data(), 100, many.statuses.data(),
                                 nullptr),
            -EINVAL);
  EXPECT_THAT(reader.error(), HasSubstr("2 of 100 blocks have not arrived; the first is number 3"));
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(many.statuses[i], i == 3 ? -EINVAL : i == 70 ? -ESTALE : 0) << i;
    EXPECT_TRUE(many.statuses[i] != 0 || many.arrived(i)) << i;
  }
  EXPECT_EQ(shmemx_exchange_pull(reader.get(), many.blocks.data(), many.destinations.data(), 3, nullptr, nullptr), 0);
}

TEST(ExchangeCalls, ABlockThatWasNotFoundIsAnError) {
  Member reader(exchange_name(12));
  const auto block = reader.find("nothing");
  std::string bytes;
  EXPECT_EQ(reader.pull(block, bytes), -EINVAL);
}

TEST(ExchangeCalls, APullRunsInTheBackground) {
  Member owner(exchange_name(13));
  ManyBlocks many(owner, 40, 5000);
  Member reader(exchange_name(13));
  ASSERT_EQ(shmemx_exchange_find(reader.get(), many.keys.data(), 40, 0, 0, many.blocks.data()), 40);
  shmemx_exchange_transfer_t* transfer = nullptr;
  ASSERT_EQ(shmemx_exchange_pull(reader.get(), many.blocks.data(), many.destinations.data(), 40, many.statuses.data(),
                                 &transfer),
            0);
  EXPECT_EQ(shmemx_exchange_wait(transfer, 60 * kSecond), 0);
  EXPECT_EQ(shmemx_exchange_test(transfer), 0);
  shmemx_exchange_transfer_free(transfer);
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(many.statuses[i], 0);
    EXPECT_TRUE(many.arrived(i)) << i;
  }
}

TEST(ExchangeCalls, TransfersHaveAQuotaAndEndWithTheExchange) {
  Member owner(exchange_name(14));
  ManyBlocks many(owner, 1, std::size_t{16} << 20);
  Member reader(exchange_name(14), {.transfers = 3});
  ASSERT_EQ(shmemx_exchange_find(reader.get(), many.keys.data(), 1, 0, 0, many.blocks.data()), 1);
  std::vector<shmemx_exchange_transfer_t*> transfers;
  int code = 0;
  // The first ones may be over before the last ones are started, but not forever.
  for (int i = 0; i < 10'000 && code == 0; ++i) {
    shmemx_exchange_transfer_t* transfer = nullptr;
    code = shmemx_exchange_pull(reader.get(), many.blocks.data(), many.destinations.data(), 1, nullptr, &transfer);
    if (code == 0) {
      transfers.push_back(transfer);
    }
  }
  EXPECT_EQ(code, -EAGAIN);
  EXPECT_THAT(reader.error(), HasSubstr("3 transfers wait or run"));
  reader.close();
  for (auto* const transfer : transfers) {
    const int outcome = shmemx_exchange_test(transfer);
    EXPECT_TRUE(outcome == 0 || outcome == -ECANCELED) << outcome;
    shmemx_exchange_transfer_free(transfer);
  }
  EXPECT_GE(transfers.size(), 3U);
}

TEST(ExchangeCalls, ThreadsPullAtTheSameTime) {
  Member owner(exchange_name(15));
  ManyBlocks many(owner, 200, 512);
  Member reader(exchange_name(15));
  ASSERT_EQ(shmemx_exchange_find(reader.get(), many.keys.data(), 200, 0, 0, many.blocks.data()), 200);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(shmemx_exchange_pull(reader.get(), many.blocks.data() + 50 * t, many.destinations.data() + 50 * t, 50,
                                       nullptr, nullptr),
                  0);
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  for (std::size_t i = 0; i < 200; ++i) {
    EXPECT_TRUE(many.arrived(i)) << i;
  }
}

TEST(ExchangeCalls, MemoryThatTheCallerHasIsRegisteredByItsDescriptor) {
  Member owner(exchange_name(16));
  Member reader(exchange_name(16));
  for (const bool sealed : {true, false}) {
    const int file = ::memfd_create("mine", MFD_ALLOW_SEALING);
    ASSERT_EQ(::ftruncate(file, 8192), 0);
    ASSERT_EQ(::fcntl(file, F_ADD_SEALS, sealed ? F_SEAL_SHRINK : 0), 0);
    ASSERT_EQ(::pwrite(file, sealed ? "mapped" : "pread!", 6, 4100), 6);
    shmemx_memory_t memory{.address = nullptr, .bytes = 4096, .fd = file, .offset = 4096};
    std::uint32_t region = 0;
    ASSERT_EQ(shmemx_exchange_register(owner.get(), &memory, &region), 0) << shmemx_error_text();
    const std::string key = "key";
    shmemx_exchange_entry_t entry{
        .key = key_of(key), .region = region, .status = 1, .offset = 4, .bytes = 6, .layout = 0};
    ASSERT_EQ(shmemx_exchange_publish(owner.get(), &entry, 1), 1);
    std::string bytes;
    const auto block = reader.find_soon("key");
    EXPECT_EQ(reader.pull(block, bytes), 0);
    EXPECT_EQ(bytes, sealed ? "mapped" : "pread!");
    if (!sealed) {
      ASSERT_EQ(::ftruncate(file, 4096), 0);
      EXPECT_EQ(reader.pull(block, bytes), -EIO);
    }
    EXPECT_EQ(shmemx_exchange_unregister(owner.get(), region), -EBUSY);
    EXPECT_EQ(owner.withdraw("key", kSecond), 0);
    EXPECT_EQ(shmemx_exchange_unregister(owner.get(), region), 0);
    EXPECT_EQ(shmemx_exchange_unregister(owner.get(), region), -ENOENT);
    ::close(file);
  }
}

TEST(ExchangeCalls, MemoryThatCannotBeHandedOverIsRefused) {
  Member owner(exchange_name(17));
  std::uint32_t region = 0;
  char mine[64];
  shmemx_memory_t memory{.address = mine, .bytes = 64, .fd = -1, .offset = 0};
  EXPECT_EQ(shmemx_exchange_register(owner.get(), &memory, &region), -EINVAL);
  EXPECT_THAT(owner.error(), HasSubstr("pass the memfd"));
  memory = {.address = nullptr, .bytes = 64, .fd = STDIN_FILENO, .offset = 0};
  const int pipe_or_terminal = shmemx_exchange_register(owner.get(), &memory, &region);
  EXPECT_TRUE(pipe_or_terminal == -EOPNOTSUPP || pipe_or_terminal == -EFBIG || pipe_or_terminal == -EBADF);
  memory.fd = -1;
  memory.offset = -4096;
  EXPECT_EQ(shmemx_exchange_register(owner.get(), &memory, &region), -EINVAL);
  memory.offset = 0;
  for (int i = 0; i < 64; ++i) {
    memory.address = nullptr;
    ASSERT_EQ(shmemx_exchange_register(owner.get(), &memory, &region), 0) << i;
  }
  memory.address = nullptr;
  EXPECT_EQ(shmemx_exchange_register(owner.get(), &memory, &region), -ENOSPC);
}

TEST(ExchangeCalls, MembersAreDescribedAndTheirBlocksListed) {
  Member owner(exchange_name(18), {.blocks = 1000});
  ManyBlocks many(owner, 10, 64);
  Member reader(exchange_name(18));
  shmemx_exchange_member_t member{};
  ASSERT_EQ(shmemx_exchange_members(reader.get(), &member, 1), 1);
  EXPECT_EQ(member.pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(member.id, owner.stats().id);
  EXPECT_EQ(member.blocks, 10U);
  EXPECT_EQ(member.bytes, 640U);
  EXPECT_EQ(member.most_blocks, 1000U);
  std::vector<shmemx_exchange_name_t> names(4);
  std::vector<shmemx_exchange_block_t> blocks(4);
  std::uint64_t cursor = 0;
  std::vector<std::string> listed;
  int count = 0;
  while ((count = shmemx_exchange_list(reader.get(), member.seat, &cursor, names.data(), blocks.data(), 4)) > 0) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      listed.emplace_back(reinterpret_cast<const char*>(names[i].data), names[i].bytes);
      EXPECT_EQ(blocks[i].bytes, 64U);
    }
  }
  EXPECT_EQ(count, 0);
  EXPECT_EQ(listed, many.names);
  EXPECT_EQ(shmemx_exchange_list(reader.get(), 63, &cursor, names.data(), blocks.data(), 4), -ENOENT);
}

TEST(ExchangeCalls, ArgumentsThatAreWrongAreErrors) {
  shmemx_exchange_t* exchange = nullptr;
  for (const char* name : {"", "a/b", "a b", "0123456789012345678901234567890123456789012345678"}) {
    EXPECT_EQ(shmemx_exchange_open(name, nullptr, &exchange), -EINVAL) << name;
    EXPECT_EQ(exchange, nullptr);
  }
  EXPECT_EQ(shmemx_exchange_open(nullptr, nullptr, &exchange), -EINVAL);
  EXPECT_EQ(shmemx_exchange_open("name", nullptr, nullptr), -EINVAL);
  const auto many = Options{.blocks = (1U << 24) + 1}.get();
  EXPECT_EQ(shmemx_exchange_open("name", &many, &exchange), -EINVAL);
  const auto later = Options{.last_reserved = 1}.get();
  EXPECT_EQ(shmemx_exchange_open("name", &later, &exchange), -EINVAL);
  Member member(exchange_name(19));
  EXPECT_EQ(shmemx_exchange_find(member.get(), nullptr, 1, 0, 0, nullptr), -EINVAL);
  EXPECT_EQ(shmemx_exchange_find(nullptr, nullptr, 0, 0, 0, nullptr), -EINVAL);
  EXPECT_EQ(shmemx_exchange_publish(member.get(), nullptr, 1), -EINVAL);
  EXPECT_EQ(shmemx_exchange_withdraw(member.get(), nullptr, 1, 0), -EINVAL);
  EXPECT_EQ(shmemx_exchange_pull(member.get(), nullptr, nullptr, 1, nullptr, nullptr), -EINVAL);
  EXPECT_EQ(shmemx_exchange_release(member.get(), nullptr, 1), -EINVAL);
  EXPECT_EQ(shmemx_exchange_members(member.get(), nullptr, 1), -EINVAL);
  EXPECT_EQ(shmemx_exchange_stats(member.get(), nullptr), -EINVAL);
  EXPECT_EQ(shmemx_exchange_test(nullptr), -EINVAL);
  EXPECT_EQ(shmemx_exchange_wait(nullptr, 0), -EINVAL);
  shmemx_exchange_close(nullptr);
  shmemx_exchange_transfer_free(nullptr);
}

}  // namespace
