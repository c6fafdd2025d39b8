// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/global_swap.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "base/mapping.hpp"
#include "base/memfd.hpp"
#include "tests/unit/shmem/private_data.hpp"

namespace shmem {
namespace {

using shmem_test::PrivateData;
using ::testing::HasSubstr;

constexpr std::size_t kPage = PrivateData::kPage;
constexpr std::size_t kPageWords = kPage / sizeof(std::uint64_t);

bool ended_well(pid_t child) {
  int status = -1;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

/// The ranges, and a view of their file as another process has it. Another page precedes them in the file.
class Swapped : public ::testing::Test {
 protected:
  explicit Swapped(std::size_t pages = 4)
      : data_(pages),
        file_(base::create_memfd("test", kPage + data_.size()).value()),
        view_(base::Mapping::share(file_.get(), kPage + data_.size()).value()) {}

  Result<std::unique_ptr<GlobalSwap>> begin() { return GlobalSwap::begin(data_.ranges(), file_.get(), kPage); }
  [[nodiscard]] volatile std::uint64_t& seen(std::size_t range, std::size_t i) const {
    return reinterpret_cast<volatile std::uint64_t*>(view_.data() + kPage + range * data_.size() / 2)[i];
  }
  [[nodiscard]] std::size_t bytes_taken() const {
    struct stat status {};
    ::fstat(file_.get(), &status);
    return static_cast<std::size_t>(status.st_blocks) * 512;
  }

  PrivateData data_;
  base::UniqueFd file_;
  base::Mapping view_;
};

TEST_F(Swapped, KeepsValuesAndAddressesAndIsSeenByOthers) {
  data_.word(0, 0) = 1;
  data_.word(1, kPageWords) = 2;
  const auto swap = begin().value();
  EXPECT_EQ(data_.word(0, 0), 1U);
  EXPECT_EQ(seen(0, 0), 1U);
  EXPECT_EQ(seen(1, kPageWords), 2U);
  seen(0, 5) = 3;
  EXPECT_EQ(data_.word(0, 5), 3U);
  data_.word(1, 5) = 4;
  EXPECT_EQ(seen(1, 5), 4U);
}

TEST_F(Swapped, IsPrivateAgainAtTheEndWithTheStoresOfOthers) {
  data_.word(0, 0) = 1;
  auto swap = begin().value();
  data_.word(0, 1) = 2;
  seen(1, 3 * kPageWords) = 3;  // a page that this process has never touched
  swap.reset();
  EXPECT_EQ(data_.word(0, 0), 1U);
  EXPECT_EQ(data_.word(0, 1), 2U);
  EXPECT_EQ(data_.word(1, 3 * kPageWords), 3U);
  seen(0, 0) = 9;
  data_.word(0, 1) = 9;
  EXPECT_EQ(data_.word(0, 0), 1U);
  EXPECT_EQ(seen(0, 1), 2U);
}

TEST_F(Swapped, CanBeDoneAgain) {
  for (std::uint64_t i = 1; i < 5; ++i) {
    const auto file = base::create_memfd("test", data_.size()).value();
    const auto swap = GlobalSwap::begin(data_.ranges(), file.get(), 0).value();
    EXPECT_EQ(data_.word(0, 7), i - 1);
    data_.word(0, 7) = i;
  }
}

class SwappedSparse : public Swapped {
 protected:
  SwappedSparse() : Swapped(16384) {}
};

TEST_F(SwappedSparse, UsesMemoryOnlyForTouchedPages) {
  data_.word(0, 5000 * kPageWords) = 1;
  data_.word(1, 0) = 2;
  const auto swap = begin().value();
  EXPECT_LE(bytes_taken(), 4 * kPage);
  seen(1, 7000 * kPageWords) = 3;
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(data_.word(0, 5000 * kPageWords) == 1 && data_.word(1, 7000 * kPageWords) == 3 ? 0 : 1);
  }
  EXPECT_TRUE(ended_well(child));
  EXPECT_LE(bytes_taken(), 5 * kPage) << "reading holes for the child's copy must not fill them";
}

TEST_F(Swapped, IsNotSharedWithAChild) {
  const auto swap = begin().value();
  data_.word(0, 0) = 1;
  seen(1, kPageWords) = 2;
  std::array<int, 2> go{};
  ASSERT_EQ(::pipe(go.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    static_cast<void>(::read(go[0], &byte, 1) == 1);
    const bool good = data_.word(0, 0) == 1 && data_.word(1, kPageWords) == 2;
    data_.word(0, 0) = 10;
    ::_exit(good && seen(0, 0) == 5 ? 0 : 1);
  }
  data_.word(0, 0) = 5;
  ASSERT_EQ(::write(go[1], "x", 1), 1);
  EXPECT_TRUE(ended_well(child));
  EXPECT_EQ(data_.word(0, 0), 5U);
  ::close(go[0]);
  ::close(go[1]);
}

TEST_F(Swapped, KeepsValuesWhenTheProgramHasClosedItsFile) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto swap = begin().value();
    data_.word(0, 3) = 3;
    seen(1, 2 * kPageWords) = 4;
    ::close_range(3, ~0U, 0);
    std::vector<base::UniqueFd> others;  // one of them reuses the number of the closed file
    others.reserve(50);
    for (int i = 0; i < 50; ++i) {
      others.push_back(base::create_memfd("other", kPage).value());
    }
    swap.reset();
    ::_exit(data_.word(0, 3) == 3 && data_.word(1, 2 * kPageWords) == 4 ? 0 : 1);
  }
  EXPECT_TRUE(ended_well(child));
}

TEST_F(Swapped, ChangesNothingIfItFails) {
  data_.word(0, 0) = 1;
  auto ranges = data_.ranges();
  ranges[1].begin += 8;  // not the start of a page
  ranges[1].size -= kPage;
  const auto swap = GlobalSwap::begin(ranges, file_.get(), kPage);
  ASSERT_FALSE(swap);
  EXPECT_THAT(swap.error().text, HasSubstr("cannot put shared memory in the place of 2 ranges"));
  EXPECT_EQ(data_.word(0, 0), 1U);
  seen(0, 0) = 2;
  EXPECT_EQ(data_.word(0, 0), 1U) << "still shared";
  data_.word(0, 1) = 1;
  data_.word(1, 1) = 1;
}

TEST_F(Swapped, RefusesToRemoveAProtection) {
  const GlobalRange& range = data_.ranges()[1];
  ASSERT_EQ(::mprotect(range.begin + kPage, kPage, PROT_NONE), 0);
  const auto swap = begin();
  ASSERT_FALSE(swap);
  EXPECT_THAT(swap.error().text, HasSubstr("the program has protected or mapped a part of its data itself"));
}

TEST_F(Swapped, RefusesToReplaceASharedMapping) {
  const GlobalRange& range = data_.ranges()[0];
  ASSERT_NE(::mmap(range.begin, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_.get(), 0), MAP_FAILED);
  const auto swap = begin();
  ASSERT_FALSE(swap);
  EXPECT_THAT(swap.error().text, HasSubstr("the program has protected or mapped a part of its data itself"));
}

TEST_F(Swapped, RefusesToMoveTheStackItRunsOn) {
  constexpr std::size_t kAround = 64 * kPage;
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) & ~(kPage - 1);
  auto* begin_of_stack = reinterpret_cast<std::byte*>(here - kAround);  // NOLINT(performance-no-int-to-ptr)
  const auto swap = GlobalSwap::begin({{begin_of_stack, 2 * kAround, 0}}, file_.get(), 0);
  ASSERT_FALSE(swap);
  EXPECT_THAT(swap.error().text, HasSubstr("stack"));
}

}  // namespace
}  // namespace shmem
