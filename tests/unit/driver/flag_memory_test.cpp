// SPDX-License-Identifier: Apache-2.0
// The memory that releases are written to, and what happens if one kind of it is not available.
#include "driver/flag_memory.hpp"
#include "base/memfd.hpp"

#include <gmock/gmock.h>
#include <linux/filter.h>
#include <linux/mempolicy.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <functional>
#include <span>

#include "tests/unit/driver/device_fixture.hpp"

namespace gba::test {
namespace {

constexpr std::uint32_t kGroup = 3;

class FlagPlaceTest : public testing::Test {
 protected:
  FlagPlaceTest() {
    state_->regions[GBA_REGION_FLAGS] = {.size = GBA_BAR4_SIZE, .mappable = true};
    state_->control[GBA_REG_CAPS] |= GBA_CAPS_BAR_FLAGS;
  }
  /// The place of the flags of a device that is opened with `wanted`.
  FlagPlace place(FlagPlace wanted) {
    auto device = open_fake(state_, wanted);
    EXPECT_TRUE(device) << device.error().text;
    return device ? (*device)->flags().place() : FlagPlace::kAuto;
  }
  Error refusal(FlagPlace wanted) {
    auto device = open_fake(state_, wanted);
    return device ? Error{} : device.error();
  }

  std::shared_ptr<FakeState> state_ = std::make_shared<FakeState>();
};

TEST_F(FlagPlaceTest, IsHostMemoryIfAvailable) {
  EXPECT_EQ(place(FlagPlace::kAuto), FlagPlace::kHost);
  EXPECT_EQ(place(FlagPlace::kHost), FlagPlace::kHost);
  EXPECT_EQ(state_->count("dma_unmap"), 2U) << "closing unmaps the memory";
  state_->gives_dma = false;
  EXPECT_EQ(place(FlagPlace::kAuto), FlagPlace::kBar);
  EXPECT_EQ(refusal(FlagPlace::kHost).code, std::errc::operation_not_permitted);
}

TEST_F(FlagPlaceTest, IsDeviceMemoryIfRequested) {
  EXPECT_EQ(place(FlagPlace::kBar), FlagPlace::kBar);
  EXPECT_EQ(state_->count("dma_map"), 0U);
}

TEST_F(FlagPlaceTest, IsRefusedIfNotAvailable) {
  state_->control[GBA_REG_CAPS] &= ~GBA_CAPS_BAR_FLAGS;
  EXPECT_EQ(refusal(FlagPlace::kBar).code, std::errc::not_supported);
  state_->control[GBA_REG_CAPS] |= GBA_CAPS_BAR_FLAGS;
  state_->regions[GBA_REGION_FLAGS].mappable = false;
  EXPECT_THAT(refusal(FlagPlace::kBar).text, testing::HasSubstr("has none that can be mapped"));
  state_->gives_dma = false;
  EXPECT_EQ(refusal(FlagPlace::kAuto).code, std::errc::operation_not_permitted)
      << "the error of the preferred place is reported";
}

TEST_F(FlagPlaceTest, InDeviceMemoryIsTheGroupsSlot) {
  const std::shared_ptr<Device> device = open_fake(state_, FlagPlace::kBar).value();
  const gba_group_handle handle{.group = kGroup, .key = 1, .member_count = 12, .reserved = 0, .sequence = 0};
  auto membership = Membership::join(device, handle, 7);
  ASSERT_TRUE(membership) << membership.error().text;
  EXPECT_EQ(state_->release_address(kGroup, 7), GBA_RELEASE_ADDR_BAR_FLAGS);
  // All regions of the fake are one file.
  MmioRegion(state_->doorbells.bytes()).word<std::uint64_t>(std::uint64_t{kGroup} * GBA_FLAG_STRIDE).store(42);
  EXPECT_EQ(membership->flag().load(), 42U);
}

TEST_F(FlagPlaceTest, InHostMemoryIsAsLargeAsAPageOfTheIommu) {
  FakeBackend backend(state_);
  IovaSpace iovas(UINT64_C(1) << 32, UINT64_C(1) << 30, 0x10000);
  FlagMemory flags(backend, iovas, 0x10000);
  ASSERT_TRUE(flags.choose(FlagPlace::kHost, false));
  const auto line = flags.take(kGroup);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->word().load(), FlagMemory::kPoison);
  EXPECT_GE(state_->dma.begin()->second.memory.size(), 0x10000U);
}

class HugeFlagsTest : public FlagPlaceTest {
 protected:
  static constexpr std::size_t kSmall = FlagMemory::kPageSize;
  /// The size of the memory that a device opened with `place` maps for DMA.
  std::size_t mapped(FlagPlace place = FlagPlace::kHugeHost) {
    auto device = open_fake(state_, place);
    EXPECT_TRUE(device) << device.error().text;
    return state_->dma.begin()->second.memory.size();
  }
  static bool system_has_huge_pages() {
    const auto page = base::create_memfd("probe", base::kHugePageSize, base::MemfdPages::kHuge);
    return page && map_shared(page->get(), 0, base::kHugePageSize, "probe");
  }
};

TEST_F(HugeFlagsTest, AreUsedOnlyOnRequest) {
  state_->behind_iommu = true;
  EXPECT_EQ(mapped(FlagPlace::kAuto), kSmall);
  EXPECT_EQ(mapped(FlagPlace::kHost), kSmall);
}

TEST_F(HugeFlagsTest, AreUsedOnlyBehindAnIommu) {
  EXPECT_EQ(mapped(), kSmall);
  state_ = std::make_shared<FakeState>();
  state_->behind_iommu = true;
  EXPECT_EQ(mapped() > kSmall, system_has_huge_pages());
}

TEST_F(HugeFlagsTest, FallBackToSmallPagesIfTooLargeToMap) {
  state_->behind_iommu = true;
  state_->largest_dma = kSmall;
  EXPECT_EQ(mapped(), kSmall);
}

bool install(std::span<sock_filter> program) {
  const sock_fprog filter{.len = static_cast<unsigned short>(program.size()), .filter = program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// From now on this process cannot allocate the pages of a file, as in a control group that has reached its limit.
bool refuse_fallocate() {
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  return install(program);
}

/// The same for the pages of a file as large as a huge page.
bool refuse_to_allocate_huge_pages() {
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 3),
                           BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[3])),  // little-endian
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, base::kHugePageSize, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  return install(program);
}

/// From now on memfd_create fails with EXDEV for huge pages of a size that is not named: those may have 1 GiB.
bool refuse_unnamed_sizes() {
  constexpr unsigned kSizeMask = 0x3fU << 26;
  constexpr unsigned kSize2Mb = 21U << 26;
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 5),
                           BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),  // little-endian
                           BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MFD_HUGETLB, 0, 3),
                           BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kSizeMask),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kSize2Mb, 1, 0),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  return install(program);
}

/// Runs `body` in a child with the filter.
void expect_with(bool (*filter)(), const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!filter()) {
      ::_exit(77);
    }
    ::_exit(body() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << "system call filters (seccomp) are not available";
  }
  EXPECT_EQ(status, 0);
}

TEST_F(FlagPlaceTest, ReportsMissingMemoryInsteadOfRaisingSigbus) {
  expect_with(refuse_fallocate, [&] {
    const bool refused = refusal(FlagPlace::kHost).code == std::errc::no_space_on_device;
    return refused && place(FlagPlace::kAuto) == FlagPlace::kBar;
  });
}

// Without free huge pages, it is the mapping that fails.
TEST_F(HugeFlagsTest, FallBackToSmallPagesIfTheyCannotBeAllocated) {
  state_->behind_iommu = true;
  expect_with(refuse_to_allocate_huge_pages, [&] { return mapped() == kSmall; });
}

TEST_F(HugeFlagsTest, AreOf2MibWhateverTheDefaultSizeOfTheMachine) {
  expect_with(refuse_unnamed_sizes, [] {
    const base::UniqueFd of_default_size(::memfd_create("probe", MFD_HUGETLB));
    const bool filtered = !of_default_size && errno == EXDEV;
    const auto page = base::create_memfd("probe", base::kHugePageSize, base::MemfdPages::kHuge);
    return filtered && (page || page.error().code != std::errc::cross_device_link);
  });
}

TEST_F(FlagPlaceTest, PrefersTheNumaNodeOfTheDevice) {
  state_->numa_node = 0;
  const std::shared_ptr<Device> device = open_fake(state_, FlagPlace::kHost).value();
  int policy = -1;
  void* const memory = state_->dma.begin()->second.memory.data();
  if (::syscall(SYS_get_mempolicy, &policy, nullptr, 0, memory, MPOL_F_ADDR) != 0) {
    GTEST_SKIP() << "the kernel does not support NUMA";
  }
  EXPECT_EQ(policy, MPOL_PREFERRED);
}

}  // namespace
}  // namespace gba::test
