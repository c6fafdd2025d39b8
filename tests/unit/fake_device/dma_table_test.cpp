// SPDX-License-Identifier: Apache-2.0
// The table of a client's memory, and stores to memory that has disappeared.
#include "fake_device/dma_table.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <string>

#include "tests/support/sanitized.hpp"
#include "tests/unit/fake_device/given.hpp"
#include "uapi/vfio_user.h"

namespace {

using fake_device::DmaPool;
using fake_device::DmaTable;
using fake_device::Given;
using fake_device::guarded_store;
using fake_device_test::again;
using fake_device_test::closer;
using fake_device_test::given;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::uint32_t kBoth = VFIO_USER_DMA_READABLE | VFIO_USER_DMA_WRITABLE;

base::UniqueFd memory(std::size_t size) {
  base::UniqueFd fd(::memfd_create("dma-table-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  return fd;
}
std::uint64_t word_of(const base::UniqueFd& fd, off_t offset) {
  std::uint64_t value = 0;
  EXPECT_EQ(::pread(fd.get(), &value, sizeof value, offset), static_cast<ssize_t>(sizeof value));
  return value;
}

TEST(DmaTable, ResolvesAddressesToTheirPlaceInTheFile) {
  DmaPool pool{.trusting = true};
  DmaTable table(pool);
  const auto file = memory(0x4000);
  ASSERT_EQ(table.map(0x100000, 0x2000, 0x1000, kBoth, again(file)), 0);
  const auto target = table.resolve(0x101008);
  ASSERT_TRUE(target);
  ASSERT_TRUE(guarded_store(*target, 0x1234));
  EXPECT_EQ(word_of(file, 0x2008), 0x1234U);
}

TEST(DmaTable, ResolvesNothingOutsideAcrossAnEndUnalignedOrReadOnly) {
  DmaPool pool{.trusting = true};
  DmaTable table(pool);
  const auto file = memory(0x4000);
  ASSERT_EQ(table.map(0x100000, 0x1000, 0, kBoth, again(file)), 0);
  ASSERT_EQ(table.map(0x200000, 0x1000, 0, VFIO_USER_DMA_READABLE, again(file)), 0);
  EXPECT_FALSE(table.resolve(0xffff8));
  EXPECT_FALSE(table.resolve(0x101000));
  EXPECT_FALSE(table.resolve(0x100ffc));
  EXPECT_FALSE(table.resolve(0x100004));
  EXPECT_FALSE(table.resolve(0x200000));
  EXPECT_TRUE(table.resolve(0x100ff8));
  EXPECT_FALSE(table.by_message(0x100000));
}

TEST(DmaTable, ReachesMemoryWithoutAFileByMessagesOnly) {
  DmaPool pool{.trusting = true};
  DmaTable table(pool);
  ASSERT_EQ(table.map(0x100000, 0x1000, 0, kBoth, Given()), 0);
  ASSERT_EQ(table.map(0x200000, 0x1000, 0, VFIO_USER_DMA_READABLE, Given()), 0);
  EXPECT_FALSE(table.resolve(0x100000));
  EXPECT_TRUE(table.by_message(0x100000));
  EXPECT_FALSE(table.by_message(0x200000)) << "read-only";
  EXPECT_FALSE(table.by_message(0x100ffc));
}

TEST(DmaTable, ReachesMemoryThatCanBeTakenAwayByMessagesOnly) {
  struct Case {
    int seals;
    bool direct;
  };
  constexpr std::array kCases{Case{0, false}, Case{F_SEAL_SHRINK, false}, Case{F_SEAL_FUTURE_WRITE, false},
                              Case{F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, false},
                              Case{F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE, true}};
  for (const auto& [seals, direct] : kCases) {
    SCOPED_TRACE(seals);
    DmaPool pool;
    DmaTable table(pool);
    const auto file = memory(0x2000);
    ASSERT_EQ(table.map(0x100000, 0x2000, 0, kBoth, again(file)), 0);
    ASSERT_EQ(::fcntl(file.get(), F_ADD_SEALS, seals), 0);
    EXPECT_EQ(table.resolve(0x100000).has_value(), direct);
    EXPECT_EQ(table.by_message(0x100000), !direct);
    EXPECT_FALSE(table.by_message(0x100004)) << "unaligned";
    if (!direct && (seals & F_SEAL_SEAL) == 0) {
      ASSERT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE), 0);
      EXPECT_FALSE(table.resolve(0x100008)) << "a store may be under way as a message";
    }
  }
}

TEST(DmaTable, FollowsAFileThatGrows) {
  DmaPool pool{.trusting = true};
  DmaTable table(pool);
  const auto file = memory(0x1000);
  ASSERT_EQ(table.map(0x100000, 0x1000, 0, kBoth, again(file)), 0);
  ASSERT_EQ(::ftruncate(file.get(), 0x400000), 0);
  ASSERT_EQ(table.map(0x200000, 0x1000, 0x3ff000, kBoth, again(file)), 0);
  ASSERT_TRUE(guarded_store(*table.resolve(0x100000), 1));
  ASSERT_TRUE(guarded_store(*table.resolve(0x200ff8), 2));
  EXPECT_EQ(word_of(file, 0), 1U);
  EXPECT_EQ(word_of(file, 0x3ffff8), 2U);
}

/// The bytes that this process has mapped of files named dma-table-test.
std::uint64_t mapped_bytes() {
  std::ifstream maps("/proc/self/maps");
  std::uint64_t total = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("dma-table-test") != std::string::npos) {
      std::size_t dash = 0;
      const auto begin = std::stoull(line, &dash, 16);
      total += std::stoull(line.substr(dash + 1), nullptr, 16) - begin;
    }
  }
  return total;
}

TEST(DmaTable, MapsOnlyTheRequestedRanges) {
  DmaPool pool{.trusting = true};
  DmaTable table(pool);
  const auto file = memory(kGiB * 1024);
  ASSERT_TRUE(closer().done(20'000));
  ASSERT_EQ(table.map(0x100000, 0x2000, 0x5000, kBoth, again(file)), 0);
  EXPECT_EQ(mapped_bytes(), 0x2000U);
  ASSERT_EQ(table.map(0x200000, 0x1000, 0x8000, kBoth, again(file)), 0);
  ASSERT_TRUE(closer().done(20'000));
  EXPECT_EQ(mapped_bytes(), 0x4000U) << "from the first range of the file to the last";
  ASSERT_TRUE(guarded_store(*table.resolve(0x101ff8), 1));
  ASSERT_TRUE(guarded_store(*table.resolve(0x200000), 2));
  EXPECT_EQ(word_of(file, 0x6ff8), 1U);
  EXPECT_EQ(word_of(file, 0x8000), 2U);
  table.unmap_all();
  ASSERT_TRUE(closer().done(20'000));
  EXPECT_EQ(mapped_bytes(), 0U);
}

TEST(DmaTable, LimitsTheBytesOfAClientAndTheSharedPool) {
  DmaPool pool{.trusting = true};
  pool.bytes = 3 * kGiB;
  const auto most = static_cast<std::size_t>(DmaPool::kOwnBytes);
  DmaTable first(pool);
  DmaTable second(pool);
  EXPECT_EQ(first.map(0, DmaPool::kMostBytes + 0x1000, 0, kBoth, given(memory(DmaPool::kMostBytes + 0x1000))), ENOSPC);
  EXPECT_EQ(first.map(0, most + 4 * kGiB, 0, kBoth, given(memory(most + 4 * kGiB))), ENOSPC);
  ASSERT_EQ(first.map(0, most + 2 * kGiB, 0, kBoth, given(memory(most + 2 * kGiB))), 0);
  EXPECT_EQ(second.map(0, most + 2 * kGiB, 0, kBoth, given(memory(most + 2 * kGiB))), ENOSPC);
  ASSERT_EQ(second.map(0, most, 0, kBoth, given(memory(most))), 0) << "each client has a reserved part";
  ASSERT_EQ(second.map(most, kGiB, 0, kBoth, given(memory(kGiB))), 0);
  EXPECT_EQ(pool.bytes, 0U);
  ASSERT_EQ(first.unmap(0, most + 2 * kGiB), 0);
  EXPECT_EQ(pool.bytes, 2 * kGiB);
  second.unmap_all();
  EXPECT_EQ(pool.bytes, 3 * kGiB);
}

TEST(DmaTable, LimitsTheMapsFromTheSharedPool) {
  DmaPool pool{.trusting = true};
  pool.maps = 10;
  DmaTable table(pool);
  const auto map = [](DmaTable& into, std::uint64_t count) { return into.map(count << 12, 0x1000, 0, kBoth, Given()); };
  for (std::uint64_t count = 0; count < DmaPool::kOwnMaps + 10; ++count) {
    ASSERT_EQ(map(table, count), 0);
  }
  EXPECT_EQ(map(table, 1 << 20), ENOSPC);
  DmaTable other(pool);
  for (std::uint64_t count = 0; count < DmaPool::kOwnMaps; ++count) {
    ASSERT_EQ(map(other, count), 0);
  }
  table.unmap_all();
  EXPECT_EQ(map(other, 1 << 20), 0);
}

TEST(DmaTable, ForgetsUnmappedRanges) {
  DmaPool pool{.trusting = true};
  DmaTable table(pool);
  const auto file = memory(0x4000);
  ASSERT_EQ(table.map(0x100000, 0x1000, 0, kBoth, again(file)), 0);
  ASSERT_EQ(table.map(0x101000, 0x1000, 0x1000, kBoth, again(file)), 0);
  ASSERT_EQ(table.unmap(0x100000, 0x1000), 0);
  EXPECT_FALSE(table.resolve(0x100000));
  EXPECT_TRUE(table.resolve(0x101000));
  table.unmap_all();
  EXPECT_EQ(table.size(), 0U);
}

TEST(DmaTable, ForgetsAllMapsInARange) {
  DmaPool pool{.trusting = true};
  DmaTable table(pool);
  const auto file = memory(0x4000);
  const auto map = [&](std::uint64_t address, std::uint64_t size) {
    ASSERT_EQ(table.map(address, size, 0, kBoth, again(file)), 0);
  };
  map(0x100000, 0x1000);
  map(0x102000, 0x2000);
  map(0x105000, 0x1000);
  EXPECT_EQ(table.unmap(0x101000, 0x1000), ENOENT) << "a gap";
  EXPECT_EQ(table.unmap(0x100000, 0x3000), ENOENT) << "its end cuts a map in two";
  EXPECT_EQ(table.unmap(0x103000, 0x3000), ENOENT) << "its beginning cuts a map in two";
  EXPECT_EQ(table.unmap(0x103000, 0x1000), ENOENT) << "a part of a map";
  EXPECT_EQ(table.size(), 3U);
  EXPECT_EQ(table.unmap(0, 0x104000), 0);
  EXPECT_EQ(table.size(), 1U);
  EXPECT_TRUE(table.resolve(0x105000));
  map(~std::uint64_t{0xfff}, 0x1000);
  EXPECT_EQ(table.unmap(0x104000, 0 - std::uint64_t{0x104000}), 0) << "to the end of the address space";
  EXPECT_EQ(table.size(), 0U);
}

TEST(DmaTable, CoversTheEndsOfTheAddressSpace) {
  DmaPool pool{.trusting = true};
  DmaTable table(pool);
  const auto file = memory(0x1000);
  ASSERT_EQ(table.map(0, 0x1000, 0, kBoth, again(file)), 0);
  ASSERT_EQ(table.map(~std::uint64_t{0xfff}, 0x1000, 0, kBoth, again(file)), 0);
  EXPECT_EQ(table.map(~std::uint64_t{0xfff}, 0x1000, 0, kBoth, again(file)), EEXIST);
  EXPECT_TRUE(table.resolve(0));
  EXPECT_TRUE(table.resolve(~std::uint64_t{7}));
}

TEST(DmaTable, LimitsTheFilesOfAClient) {
  DmaPool pool{.trusting = true};
  DmaTable table(pool);
  for (std::uint64_t count = 0; count < fake_device::kMaxDmaFiles; ++count) {
    ASSERT_EQ(table.map(count * 0x1000, 0x1000, 0, kBoth, given(memory(0x1000))), 0);
  }
  EXPECT_EQ(table.map(0x1000000, 0x1000, 0, kBoth, given(memory(0x1000))), ENOSPC);
  ASSERT_EQ(table.unmap(0, 0x1000), 0);
  EXPECT_EQ(table.map(0x1000000, 0x1000, 0, kBoth, given(memory(0x1000))), 0) << "one file was released";
}

TEST(DmaTable, LimitsTheMapsOfAClient) {
  DmaPool pool{.trusting = true};
  DmaTable table(pool);
  for (std::uint64_t count = 0; count < fake_device::kMaxDmaMaps; ++count) {
    ASSERT_EQ(table.map(count * 0x1000, 0x1000, 0, kBoth, Given()), 0);
  }
  EXPECT_EQ(table.map(std::uint64_t{1} << 40, 0x1000, 0, kBoth, Given()), ENOSPC);
}

TEST(GuardedStore, SurvivesTruncationOfTheFile) {
  fake_device::install_sigbus_guard();
  DmaPool pool{.trusting = true};
  DmaTable table(pool);
  const auto file = memory(0x2000);
  const auto other = memory(0x1000);
  ASSERT_EQ(table.map(0x100000, 0x2000, 0, kBoth, again(file)), 0);
  ASSERT_EQ(table.map(0x200000, 0x1000, 0, kBoth, again(other)), 0);
  const auto target = table.resolve(0x101000);
  ASSERT_TRUE(guarded_store(*target, 1));
  ASSERT_EQ(::ftruncate(file.get(), 0x1000), 0);
  EXPECT_FALSE(guarded_store(*target, 2));
  EXPECT_TRUE(guarded_store(*table.resolve(0x200000), 3)) << "other memory is not touched";
  EXPECT_EQ(word_of(other, 0), 3U);
}

#if !defined(__SANITIZE_THREAD__)  // TSan maps memory of its own when a signal arrives
// Maps a file, takes its memory away, and stores into it: true if the store noticed and this process goes on.
bool survives_a_loss(DmaTable& table, std::uint64_t iova, std::size_t size, bool lower_limit) {
  const auto file = memory(size);
  const bool mapped = table.map(iova, size, 0, kBoth, again(file)) == 0;
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  const bool lost = (!lower_limit || ::setrlimit(RLIMIT_DATA, &none) == 0) && ::ftruncate(file.get(), 0) == 0;
  return mapped && lost && !guarded_store(*table.resolve(iova + size / 2 + 8), 1);
}

// The first loss lets ASan map what it needs for a thread's variables, which it does when they are first used.
int lose_memory_without_any_left() {
  ::alarm(20);
  fake_device::install_sigbus_guard();
  DmaPool pool{.trusting = true};
  DmaTable table(pool);
  return survives_a_loss(table, 0x100000, 0x2000, false) && survives_a_loss(table, kGiB, kGiB, true) ? 0 : 1;
}

// RLIMIT_DATA stands in for vm.overcommit_memory=2 with its limit reached: private memory counts against both.
TEST(GuardedStoreDeathTest, NeedsNoMemoryToSurvive) {
  if (test_support::kEmulated) {
    GTEST_SKIP() << "qemu-user does not limit a program's memory";
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(::_exit(lose_memory_without_any_left()), ::testing::ExitedWithCode(0), "");
}
#endif

TEST(GuardedStore, SurvivesTheLossOfAHugePage) {
  if (test_support::kEmulated) {
    GTEST_SKIP() << "qemu-user does not map huge pages at addresses fit for them";
  }
  fake_device::install_sigbus_guard();
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  base::UniqueFd file(::memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB));
  if (!file || ::ftruncate(file.get(), kHuge) != 0) {
    GTEST_SKIP() << "no huge pages available";
  }
  DmaPool pool{.trusting = true};
  DmaTable table(pool);
  ASSERT_EQ(table.map(0x200000, kHuge, 0, kBoth, again(file)), 0);
  ASSERT_EQ(::ftruncate(file.get(), 0), 0);
  for (const std::uint64_t offset : {std::uint64_t{8}, std::uint64_t{kHuge / 2}, std::uint64_t{kHuge - 8}}) {
    guarded_store(*table.resolve(0x200000 + offset), 1);
  }
}

TEST(GuardedStoreDeathTest, LeavesOtherBusErrorsAlone) {
  EXPECT_EXIT(
      {
        fake_device::install_sigbus_guard();
        const auto file = memory(0x1000);
        auto* const page =
            static_cast<volatile char*>(::mmap(nullptr, 0x1000, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
        if (::ftruncate(file.get(), 0) == 0) {
          page[0] = 1;
        }
      },
      ::testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
