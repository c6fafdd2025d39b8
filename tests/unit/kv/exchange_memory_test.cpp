// SPDX-License-Identifier: Apache-2.0
// Memory that can be handed over, and leases of blocks in it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>

#include "base/memfd.hpp"
#include "kv/exchange/leases.hpp"
#include "kv/exchange/memory.hpp"

namespace {

using shmem::exchange::Access;
using shmem::exchange::check_memory;
using shmem::exchange::LeaseBoard;
using shmem::exchange::Leases;
using shmem::exchange::MappingRoom;
using shmem::exchange::PeerMemory;

base::UniqueFd unsealed(off_t size) {
  base::UniqueFd file(::memfd_create("memory", MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(file.get(), size), 0);
  return file;
}

base::UniqueFd copy_of(const base::UniqueFd& file) {
  return base::UniqueFd(::dup(file.get()));
}

TEST(ExchangeMemory, IsMappedOnlyIfItCannotShrink) {
  const auto file = unsealed(8192);
  EXPECT_EQ(*check_memory(file.get(), {0, 8192}), Access::kRead);
  ASSERT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_EQ(*check_memory(file.get(), {4096, 4096}), Access::kMapped);
}

TEST(ExchangeMemory, OtherFilesAreRefusedAtOnce) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const base::UniqueFd from(pipe[0]);
  const base::UniqueFd to(pipe[1]);
  const base::UniqueFd null(::open("/dev/null", O_RDWR));
  for (const int fd : {from.get(), to.get(), null.get()}) {
    EXPECT_EQ(check_memory(fd, {0, 1}).error().code, std::errc::operation_not_supported);
  }
  EXPECT_EQ(check_memory(1'000'000, {0, 1}).error().code, std::errc::bad_file_descriptor);
}

TEST(ExchangeMemory, RangesMustBeInTheFile) {
  const auto file = unsealed(8192);
  EXPECT_EQ(check_memory(file.get(), {0, 0}).error().code, std::errc::invalid_argument);
  EXPECT_EQ(check_memory(file.get(), {1, 100}).error().code, std::errc::invalid_argument);
  EXPECT_EQ(check_memory(file.get(), {UINT64_MAX - 4095, 4096}).error().code, std::errc::invalid_argument);
  EXPECT_EQ(check_memory(file.get(), {0, UINT64_MAX}).error().code, std::errc::invalid_argument);
  EXPECT_EQ(check_memory(file.get(), {4096, 4097}).error().code, std::errc::file_too_large);
  EXPECT_EQ(check_memory(file.get(), {8192, 1}).error().code, std::errc::file_too_large);
}

TEST(ExchangeMemory, AFileThatShrinksIsAnErrorAndKillsNobody) {
  const auto file = unsealed(8192);
  ASSERT_EQ(::pwrite(file.get(), "abcd", 4, 4096), 4);
  const auto memory = PeerMemory::open(copy_of(file), {4096, 4096}, nullptr);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->at(0), nullptr);
  std::array<std::byte, 4> bytes{};
  EXPECT_EQ(memory->read(1, bytes.data(), 2), std::errc{});
  EXPECT_EQ(static_cast<char>(bytes[1]), 'c');
  ASSERT_EQ(::ftruncate(file.get(), 4096), 0);
  EXPECT_EQ(memory->read(0, bytes.data(), 4), std::errc::io_error);
}

TEST(ExchangeMemory, BoundsAreCheckedWithoutOverflow) {
  const auto memory = PeerMemory::open(*base::create_memfd("memory", 4096), {0, 4096}, nullptr);
  ASSERT_TRUE(memory);
  EXPECT_TRUE(memory->has(0, 4096));
  EXPECT_TRUE(memory->has(4096, 0));
  EXPECT_FALSE(memory->has(1, 4096));
  EXPECT_FALSE(memory->has(4097, 0));
  EXPECT_FALSE(memory->has(UINT64_MAX, 2));
  EXPECT_FALSE(memory->has(2, UINT64_MAX));
}

TEST(ExchangeMemory, ThereIsRoomForSoManyMappings) {
  const auto of_two_pages = std::make_shared<MappingRoom>(8192);
  const auto open = [&](std::size_t bytes) {
    return PeerMemory::open(*base::create_memfd("memory", bytes), {0, bytes}, of_two_pages.get());
  };
  std::array<std::byte, 1> byte{};
  {
    const auto first = open(4096);
    const auto second = open(8192);
    const auto third = open(4096);
    EXPECT_NE(first->at(0), nullptr);
    EXPECT_EQ(second->at(0), nullptr);
    EXPECT_EQ(second->read(8191, byte.data(), 1), std::errc{});
    EXPECT_NE(third->at(0), nullptr) << "smaller, and so there is room";
    EXPECT_EQ(open(4096)->at(0), nullptr);
  }
  EXPECT_NE(open(8192)->at(0), nullptr) << "the others have been unmapped";
}

TEST(ExchangeMemory, SharedMemoryOfOthersMustNotShrink) {
  EXPECT_FALSE(shmem::exchange::check_shared(unsealed(4096).get(), 4096));
  EXPECT_TRUE(shmem::exchange::check_shared(base::create_memfd("memory", 4096)->get(), 4096));
  EXPECT_FALSE(shmem::exchange::check_shared(base::create_memfd("memory", 4096)->get(), 4097));
}

struct LeasePair {
  explicit LeasePair(std::uint32_t quota)
      : board(*LeaseBoard::create(quota)),
        leases(*base::Mapping::share(board.file(), shmem::exchange::lease_bytes(quota)), quota) {}
  LeaseBoard board;
  Leases leases;
};

TEST(ExchangeLeases, AreSeenByTheOwnerUntilTheyEnd) {
  LeasePair pair(2);
  const auto word = pair.leases.hold(5);
  ASSERT_TRUE(word);
  pair.leases.set(*word, 5, 1000);
  EXPECT_TRUE(pair.board.has(5, 999));
  EXPECT_FALSE(pair.board.has(5, 1000)) << "it has expired";
  EXPECT_FALSE(pair.board.has(4, 999));
  EXPECT_TRUE(pair.leases.end_lease(*word, 5));
  pair.leases.give(Leases::Use::kHeld, {&*word, 1});
  EXPECT_FALSE(pair.board.has(5, 999));
}

TEST(ExchangeLeases, TheClockMayWrapAround) {
  LeasePair pair(1);
  const auto word = pair.leases.hold(0);
  pair.leases.set(*word, 0, 10);
  EXPECT_TRUE(pair.board.has(0, 0xffff'fff0U));
  pair.leases.set(*word, 0, 0xffff'fff0U);
  EXPECT_FALSE(pair.board.has(0, 10));
}

TEST(ExchangeLeases, HaveAQuotaWhichPullsDoNotUse) {
  LeasePair pair(2);
  const auto first = pair.leases.hold(1);
  ASSERT_TRUE(first && pair.leases.hold(2));
  EXPECT_FALSE(pair.leases.hold(3));
  std::array<std::uint32_t, 1000> words{};
  EXPECT_EQ(pair.leases.take(Leases::Use::kPull, words), shmem::exchange::kPullWords);
  EXPECT_EQ(pair.leases.take(Leases::Use::kPull, words), 0U);
  EXPECT_TRUE(pair.leases.end_lease(*first, 1));
  pair.leases.give(Leases::Use::kHeld, {&*first, 1});
  EXPECT_TRUE(pair.leases.hold(3));
}

TEST(ExchangeLeases, AreGivenBackOnlyOnceAndOnlyByTheirHolder) {
  LeasePair pair(2);
  const auto word = pair.leases.hold(1);
  EXPECT_FALSE(pair.leases.end_lease(*word, 2)) << "another slot";
  EXPECT_FALSE(pair.leases.end_lease(*word + 1, 1)) << "another word";
  EXPECT_FALSE(pair.leases.end_lease(UINT32_MAX, 1));
  EXPECT_TRUE(pair.leases.end_lease(*word, 1));
  EXPECT_FALSE(pair.leases.end_lease(*word, 1));
}

}  // namespace
