// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/heap.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace shmem {
namespace {

constexpr std::size_t kUnit = Heap::kMinAlignment;

TEST(Heap, BeginsWithOneFreeBlock) {
  const Heap heap(10 * kUnit);
  EXPECT_EQ(heap.stats().size, 10 * kUnit);
  EXPECT_EQ(heap.stats().used, 0U);
  EXPECT_EQ(heap.stats().largest_free, 10 * kUnit);
}

TEST(Heap, GivesTheFirstPlaceThatFits) {
  Heap heap(10 * kUnit);
  EXPECT_EQ(heap.allocate(kUnit), 0U);
  EXPECT_EQ(heap.allocate(2 * kUnit), kUnit);
  EXPECT_EQ(heap.allocate(kUnit), 3 * kUnit);
  ASSERT_TRUE(heap.release(0));
  ASSERT_TRUE(heap.release(kUnit));
  EXPECT_EQ(heap.allocate(3 * kUnit), 0U);
}

TEST(Heap, CountsWhatItTakesAndRemembersWhatWasAskedFor) {
  Heap heap(10 * kUnit);
  const auto offset = heap.allocate(kUnit + 1);
  ASSERT_TRUE(offset);
  EXPECT_EQ(heap.size_of(*offset), kUnit + 1);
  EXPECT_EQ(heap.stats().used, 2 * kUnit);
  EXPECT_EQ(heap.stats().largest_free, 8 * kUnit);
}

TEST(Heap, AlignsTheOffset) {
  Heap heap(1 << 20);
  ASSERT_EQ(heap.allocate(1), 0U);
  EXPECT_EQ(heap.allocate(1, 1 << 16), std::size_t{1} << 16);
  EXPECT_EQ(heap.allocate(1), kUnit) << "what lies before an aligned block stays free";
}

TEST(Heap, TakesSmallAlignmentsForItsOwn) {
  Heap heap(4 * kUnit);
  ASSERT_EQ(heap.allocate(1, 1), 0U);
  EXPECT_EQ(heap.allocate(1, 8), kUnit);
}

TEST(Heap, RefusesWhatDoesNotFit) {
  Heap heap(4 * kUnit);
  EXPECT_FALSE(heap.allocate(4 * kUnit + 1));
  EXPECT_FALSE(heap.allocate(std::numeric_limits<std::size_t>::max()));
  EXPECT_FALSE(heap.allocate(std::numeric_limits<std::size_t>::max() - kUnit));
  ASSERT_TRUE(heap.allocate(1));
  EXPECT_FALSE(heap.allocate(1, std::size_t{1} << 62)) << "the next multiple is beyond the heap";
  EXPECT_TRUE(heap.allocate(3 * kUnit)) << "a refusal takes nothing";
  EXPECT_FALSE(heap.allocate(1));
}

TEST(Heap, OfNothingHasRoomForNothing) {
  Heap heap(kUnit - 1);
  EXPECT_EQ(heap.stats().size, 0U);
  EXPECT_FALSE(heap.allocate(1));
}

TEST(Heap, ReleasesOnlyTheBeginningsOfLiveBlocks) {
  Heap heap(10 * kUnit);
  ASSERT_EQ(heap.allocate(4 * kUnit), 0U);
  EXPECT_FALSE(heap.release(kUnit));
  EXPECT_FALSE(heap.release(1));
  EXPECT_FALSE(heap.size_of(kUnit));
  EXPECT_TRUE(heap.release(0));
  EXPECT_FALSE(heap.release(0)) << "twice";
  EXPECT_FALSE(heap.size_of(0));
}

TEST(Heap, JoinsNeighboursInAnyOrderOfRelease) {
  std::vector<std::size_t> order = {0, 1, 2, 3};
  do {
    Heap heap(4 * kUnit);
    for (std::size_t i = 0; i < order.size(); ++i) ASSERT_EQ(heap.allocate(kUnit), i * kUnit);
    for (const std::size_t block : order) ASSERT_TRUE(heap.release(block * kUnit));
    ASSERT_EQ(heap.stats().largest_free, 4 * kUnit);
  } while (std::next_permutation(order.begin(), order.end()));
}

/// The same promises kept in the plainest way: one flag for each unit.
class NaiveHeap {
 public:
  explicit NaiveHeap(std::size_t units) : taken_(units, false) {}

  std::optional<std::size_t> allocate(std::size_t size, std::size_t alignment) {
    const std::size_t count = (size + kUnit - 1) / kUnit;
    const std::size_t step = std::max(alignment / kUnit, std::size_t{1});
    for (std::size_t start = 0; start + count <= taken_.size(); start += step) {
      if (std::any_of(at(start), at(start + count), [](bool taken) { return taken; })) continue;
      std::fill(at(start), at(start + count), true);
      live_.push_back({start * kUnit, count});
      return start * kUnit;
    }
    return std::nullopt;
  }
  void release(std::size_t index) {
    const auto [offset, count] = live_[index];
    std::fill(at(offset / kUnit), at(offset / kUnit + count), false);
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(index));
  }
  [[nodiscard]] std::size_t live() const { return live_.size(); }
  [[nodiscard]] std::size_t offset(std::size_t index) const { return live_[index].first; }
  [[nodiscard]] std::size_t used() const {
    return static_cast<std::size_t>(std::count(taken_.begin(), taken_.end(), true)) * kUnit;
  }
  [[nodiscard]] std::size_t largest_free() const {
    std::size_t largest = 0;
    std::size_t run = 0;
    for (const bool taken : taken_) {
      run = taken ? 0 : run + 1;
      largest = std::max(largest, run);
    }
    return largest * kUnit;
  }

 private:
  std::vector<bool>::iterator at(std::size_t unit) { return taken_.begin() + static_cast<std::ptrdiff_t>(unit); }

  std::vector<bool> taken_;
  std::vector<std::pair<std::size_t, std::size_t>> live_;  // offset, units
};

TEST(Heap, AgreesWithANaiveHeapOverRandomOperations) {
  constexpr std::size_t kUnits = 512;
  std::mt19937 random(20240607);  // NOLINT: the same operations each time
  const auto below = [&](std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random); };
  Heap heap(kUnits * kUnit);
  NaiveHeap naive(kUnits);
  for (int operation = 0; operation < 20000; ++operation) {
    if (naive.live() == 0 || below(100) < 55) {
      const std::size_t size = 1 + below(below(8) == 0 ? 100 * kUnit : 6 * kUnit);
      const std::size_t alignment = std::size_t{1} << below(13);
      ASSERT_EQ(heap.allocate(size, alignment), naive.allocate(size, alignment)) << "operation " << operation;
    } else {
      const std::size_t index = below(naive.live());
      ASSERT_TRUE(heap.release(naive.offset(index))) << "operation " << operation;
      naive.release(index);
    }
    ASSERT_EQ(heap.stats().used, naive.used());
    ASSERT_EQ(heap.stats().largest_free, naive.largest_free());
  }
}

}  // namespace
}  // namespace shmem
