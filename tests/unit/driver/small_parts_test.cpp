// SPDX-License-Identifier: Apache-2.0
// The parts that need no device: mappings, mmio, member lists, deadlines, spinning.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "base/memfd.hpp"
#include "base/usable_processors.hpp"
#include "driver/group_status.hpp"
#include "driver/mmio.hpp"
#include "driver/system_calls.hpp"
#include "driver/wait.hpp"
#include "tests/support/many_processors.hpp"

namespace gba {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::HasSubstr;

TEST(Mapping, ShowsTheContentOfTheFile) {
  const auto file = base::create_memfd("test", 8192);
  ASSERT_TRUE(file);
  const auto one = map_shared(file->get(), 4096, 4096, "the second page");
  const auto both = map_shared(file->get(), 0, 8192, "the file");
  ASSERT_TRUE(one && both);
  one->bytes()[1] = std::byte{42};
  EXPECT_EQ(both->bytes()[4097], std::byte{42});
}

TEST(Mapping, RefusesAFileThatIsTooShortInsteadOfFaultingLater) {
  const auto file = base::create_memfd("test", 4096);
  ASSERT_TRUE(file);
  const auto mapping = map_shared(file->get(), 0, 8192, "the doorbells");
  ASSERT_FALSE(mapping);
  EXPECT_THAT(mapping.error().text, HasSubstr("cannot map the doorbells"));
}

TEST(Mapping, NamesWhatCouldNotBeMapped) {
  const auto mapping = map_shared(-1, 0, 4096, "the doorbells");
  ASSERT_FALSE(mapping);
  EXPECT_EQ(mapping.error().code, std::errc::bad_file_descriptor);
  EXPECT_EQ(mapping.error().text, "gba: cannot map the doorbells: bad file descriptor");
}

TEST(SealedMemory, CannotBeResized) {
  const auto file = base::create_memfd("test", 4096);
  ASSERT_TRUE(file);
  EXPECT_NE(::ftruncate(file->get(), 0), 0);
  EXPECT_NE(::ftruncate(file->get(), 8192), 0);
}

TEST(SealedMemory, KeepsItsPagesOnceItsSealsAreClosed) {
  const auto file = base::create_memfd("test", 4096, base::MemfdPages::kUsual, base::MemfdSeals::kOpen);
  ASSERT_TRUE(file);
  const auto mapping = map_shared(file->get(), 0, 4096, "the file");
  ASSERT_TRUE(mapping);
  EXPECT_FALSE(base::keeps_pages(file->get()));
  ASSERT_TRUE(base::keep_pages(file->get()));
  EXPECT_TRUE(base::keeps_pages(file->get()));
  EXPECT_NE(::fallocate(file->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
  mapping->bytes()[0] = std::byte{1};
  EXPECT_FALSE(map_shared(file->get(), 0, 4096, "the file"));
  const auto closed = base::create_memfd("test", 4096);
  ASSERT_TRUE(closed);
  EXPECT_FALSE(base::keep_pages(closed->get()));
}

TEST(MmioRegion, RefusesWordsOutsideOrUnaligned) {
  alignas(8) std::array<std::byte, 64> memory{};
  const MmioRegion region(memory);
  EXPECT_NO_THROW((void)region.word<std::uint64_t>(56));
  EXPECT_THROW((void)region.word<std::uint64_t>(57), std::out_of_range);
  EXPECT_THROW((void)region.word<std::uint64_t>(64), std::out_of_range);
  EXPECT_THROW((void)region.word<std::uint32_t>(62), std::out_of_range);
  EXPECT_THROW((void)region.word<std::uint64_t>(UINT64_MAX - 7), std::out_of_range);
  EXPECT_NO_THROW((void)region.word<std::uint32_t>(60));
}

MemberMask mask_of(std::initializer_list<unsigned> members) {
  MemberMask mask{};
  for (const unsigned member : members) {
    mask[member / 64] |= std::uint64_t{1} << (member % 64);
  }
  return mask;
}

TEST(MemberList, ListsMembersAsText) {
  EXPECT_EQ(to_text(MemberMask{}), "nobody");
  EXPECT_EQ(to_text(mask_of({5})), "member 5");
  EXPECT_EQ(to_text(mask_of({0, 1})), "members 0-1");
  EXPECT_EQ(to_text(mask_of({0, 63, 64, 65, 707})), "members 0, 63-65 and 707");
}

TEST(MemberList, CountsMembersThatDoNotFit) {
  MemberMask odd{};
  odd.fill(0xaaaaaaaaaaaaaaaa);
  EXPECT_THAT(to_text(odd), testing::EndsWith("29, 31 and 368 more"));
}

TEST(Deadline, NeverPassesIfUnlimited) {
  EXPECT_FALSE(Deadline::never().passed());
  EXPECT_FALSE(Deadline::after_ns(UINT64_MAX).passed());
  EXPECT_FALSE(Deadline::after(std::chrono::nanoseconds::max()).passed());
  EXPECT_FALSE(Deadline::after_ns(static_cast<std::uint64_t>(INT64_MAX) - 1).passed());
  EXPECT_EQ(Deadline::after_ns(UINT64_MAX).left(hours{1}), hours{1});
}

TEST(Deadline, PassesAndThenHasNothingLeft) {
  const Deadline now = Deadline::after_ns(0);
  EXPECT_TRUE(now.passed());
  EXPECT_EQ(now.left(hours{1}), milliseconds{0});
  EXPECT_FALSE(Deadline::after(hours{1}).passed());
  EXPECT_EQ(Deadline::after(hours{1}).left(milliseconds{7}), milliseconds{7});
}

TEST(SpinPolicy, DoesNotSpinOnTheOnlyProcessor) {
  EXPECT_EQ(spin_policy(1, 1).spins, 0U);
}

TEST(UsableProcessors, AreThoseOfThisProcess) {
  cpu_set_t set;
  ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_EQ(base::usable_processors(), static_cast<unsigned>(CPU_COUNT(&set)));
}

TEST(UsableProcessors, MayBeMoreThanASetOfTheCLibraryHolds) {
  test_support::many_processors = 4096;
  EXPECT_EQ(base::usable_processors(), 4096U);
  test_support::many_processors = 0;
}

TEST(SpinPolicy, SpinsBrieflyIfOversubscribed) {
  EXPECT_EQ(spin_policy(4, 4).spins, spin_policy(4, 1).spins);
  EXPECT_GT(spin_policy(4, 5).spins, 0U);
  EXPECT_LT(spin_policy(4, 5).spins, spin_policy(4, 4).spins / 5);
}

}  // namespace
}  // namespace gba
