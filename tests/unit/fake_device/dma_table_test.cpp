// SPDX-License-Identifier: Apache-2.0
// Where a client's memory is, and what happens when it is taken away.
#include "fake_device/dma_table.hpp"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "uapi/vfio_user.h"

namespace {

using fake_device::DmaTable;
using fake_device::guarded_store;
using fake_device::UniqueFd;

constexpr std::uint32_t kBoth = VFIO_USER_DMA_READABLE | VFIO_USER_DMA_WRITABLE;

UniqueFd memory(std::size_t size) {
  UniqueFd fd(::memfd_create("dma-table-test", MFD_CLOEXEC));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  return fd;
}
UniqueFd again(const UniqueFd& fd) {
  return UniqueFd(::dup(fd.get()));
}
std::uint64_t word_of(const UniqueFd& fd, off_t offset) {
  std::uint64_t value = 0;
  EXPECT_EQ(::pread(fd.get(), &value, sizeof value, offset), static_cast<ssize_t>(sizeof value));
  return value;
}

TEST(DmaTable, ResolvesAddressesToTheirPlaceInTheFile) {
  DmaTable table;
  const auto file = memory(0x4000);
  ASSERT_EQ(table.map(0x100000, 0x2000, 0x1000, kBoth, again(file)), 0);
  const auto target = table.resolve(0x101008);
  ASSERT_TRUE(target);
  ASSERT_TRUE(guarded_store(*target, 0x1234));
  EXPECT_EQ(word_of(file, 0x2008), 0x1234U);
}

TEST(DmaTable, ResolvesNothingOutsideAcrossAnEndUnalignedOrReadOnly) {
  DmaTable table;
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
  DmaTable table;
  ASSERT_EQ(table.map(0x100000, 0x1000, 0, kBoth, UniqueFd()), 0);
  ASSERT_EQ(table.map(0x200000, 0x1000, 0, VFIO_USER_DMA_READABLE, UniqueFd()), 0);
  EXPECT_FALSE(table.resolve(0x100000));
  EXPECT_TRUE(table.by_message(0x100000));
  EXPECT_FALSE(table.by_message(0x200000)) << "read-only";
  EXPECT_FALSE(table.by_message(0x100ffc));
}

TEST(DmaTable, FollowsAFileThatGrows) {
  DmaTable table;
  const auto file = memory(0x1000);
  ASSERT_EQ(table.map(0x100000, 0x1000, 0, kBoth, again(file)), 0);
  ASSERT_EQ(::ftruncate(file.get(), 0x400000), 0);
  ASSERT_EQ(table.map(0x200000, 0x1000, 0x3ff000, kBoth, again(file)), 0);
  ASSERT_TRUE(guarded_store(*table.resolve(0x100000), 1));
  ASSERT_TRUE(guarded_store(*table.resolve(0x200ff8), 2));
  EXPECT_EQ(word_of(file, 0), 1U);
  EXPECT_EQ(word_of(file, 0x3ffff8), 2U);
}

TEST(DmaTable, ForgetsWhatIsUnmapped) {
  DmaTable table;
  const auto file = memory(0x4000);
  ASSERT_EQ(table.map(0x100000, 0x1000, 0, kBoth, again(file)), 0);
  ASSERT_EQ(table.map(0x101000, 0x1000, 0x1000, kBoth, again(file)), 0);
  ASSERT_EQ(table.unmap(0x100000, 0x1000), 0);
  EXPECT_FALSE(table.resolve(0x100000));
  EXPECT_TRUE(table.resolve(0x101000));
  table.unmap_all();
  EXPECT_EQ(table.size(), 0U);
}

TEST(DmaTable, ForgetsAllThatLiesInARange) {
  DmaTable table;
  const auto file = memory(0x4000);
  const auto map = [&](std::uint64_t address, std::uint64_t size) {
    ASSERT_EQ(table.map(address, size, 0, kBoth, again(file)), 0);
  };
  map(0x100000, 0x1000);
  map(0x102000, 0x2000);
  map(0x105000, 0x1000);
  EXPECT_EQ(table.unmap(0x101000, 0x1000), ENOENT) << "a gap";
  EXPECT_EQ(table.unmap(0x100000, 0x3000), ENOENT) << "its end cuts a map in two";
  EXPECT_EQ(table.unmap(0x103000, 0x3000), ENOENT) << "its beginning does";
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
  DmaTable table;
  const auto file = memory(0x1000);
  ASSERT_EQ(table.map(0, 0x1000, 0, kBoth, again(file)), 0);
  ASSERT_EQ(table.map(~std::uint64_t{0xfff}, 0x1000, 0, kBoth, again(file)), 0);
  EXPECT_EQ(table.map(~std::uint64_t{0xfff}, 0x1000, 0, kBoth, again(file)), EEXIST);
  EXPECT_TRUE(table.resolve(0));
  EXPECT_TRUE(table.resolve(~std::uint64_t{7}));
}

TEST(DmaTable, LimitsTheFilesOfAClient) {
  DmaTable table;
  for (std::uint64_t count = 0; count < fake_device::kMaxDmaFiles; ++count) {
    ASSERT_EQ(table.map(count * 0x1000, 0x1000, 0, kBoth, memory(0x1000)), 0);
  }
  EXPECT_EQ(table.map(0x1000000, 0x1000, 0, kBoth, memory(0x1000)), ENOSPC);
  ASSERT_EQ(table.unmap(0, 0x1000), 0);
  EXPECT_EQ(table.map(0x1000000, 0x1000, 0, kBoth, memory(0x1000)), 0) << "one was given back";
}

TEST(DmaTable, LimitsTheMapsOfAClient) {
  DmaTable table;
  for (std::uint64_t count = 0; count < fake_device::kMaxDmaMaps; ++count) {
    ASSERT_EQ(table.map(count * 0x1000, 0x1000, 0, kBoth, UniqueFd()), 0);
  }
  EXPECT_EQ(table.map(std::uint64_t{1} << 40, 0x1000, 0, kBoth, UniqueFd()), ENOSPC);
}

TEST(GuardedStore, SurvivesThatTheFileIsTruncated) {
  fake_device::install_sigbus_guard();
  DmaTable table;
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
