// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/heap.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "tests/support/soak.hpp"

namespace shmem {
namespace {

constexpr std::size_t kUnit = Heap::kMinAlignment;

TEST(Heap, StartsWithOneFreeBlock) {
  const Heap heap(10 * kUnit);
  EXPECT_EQ(heap.stats().size, 10 * kUnit);
  EXPECT_EQ(heap.stats().used, 0U);
  EXPECT_EQ(heap.stats().largest_free, 10 * kUnit);
}

TEST(Heap, AllocatesTheFirstPlaceThatFits) {
  Heap heap(10 * kUnit);
  EXPECT_EQ(heap.allocate(kUnit), 0U);
  EXPECT_EQ(heap.allocate(2 * kUnit), kUnit);
  EXPECT_EQ(heap.allocate(kUnit), 3 * kUnit);
  ASSERT_TRUE(heap.release(0));
  ASSERT_TRUE(heap.release(kUnit));
  EXPECT_EQ(heap.allocate(3 * kUnit), 0U);
}

TEST(Heap, CountsRoundedSizesAndKeepsRequestedOnes) {
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
  EXPECT_EQ(heap.allocate(1), kUnit) << "the gap before an aligned block stays free";
}

TEST(Heap, RaisesSmallAlignmentsToItsUnit) {
  Heap heap(4 * kUnit);
  ASSERT_EQ(heap.allocate(1, 1), 0U);
  EXPECT_EQ(heap.allocate(1, 8), kUnit);
}

TEST(Heap, RefusesBlocksThatDoNotFit) {
  Heap heap(4 * kUnit);
  EXPECT_FALSE(heap.allocate(4 * kUnit + 1));
  EXPECT_FALSE(heap.allocate(std::numeric_limits<std::size_t>::max()));
  EXPECT_FALSE(heap.allocate(std::numeric_limits<std::size_t>::max() - kUnit));
  ASSERT_TRUE(heap.allocate(1));
  EXPECT_FALSE(heap.allocate(1, std::size_t{1} << 62)) << "the next aligned offset is beyond the heap";
  EXPECT_TRUE(heap.allocate(3 * kUnit)) << "a refused call allocates nothing";
  EXPECT_FALSE(heap.allocate(1));
}

TEST(Heap, OfSizeZeroHasNoRoom) {
  Heap heap(kUnit - 1);
  EXPECT_EQ(heap.stats().size, 0U);
  EXPECT_FALSE(heap.allocate(1));
}

TEST(Heap, ReleasesOnlyAtTheStartOfALiveBlock) {
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
    for (std::size_t i = 0; i < order.size(); ++i) {
      ASSERT_EQ(heap.allocate(kUnit), i * kUnit);
    }
    for (const std::size_t block : order) {
      ASSERT_TRUE(heap.release(block * kUnit));
    }
    ASSERT_EQ(heap.stats().largest_free, 4 * kUnit);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Heap, ShrinksABlockInPlace) {
  Heap heap(10 * kUnit);
  ASSERT_EQ(heap.allocate(4 * kUnit), 0U);
  ASSERT_EQ(heap.allocate(kUnit), 4 * kUnit);
  ASSERT_TRUE(heap.resize(0, kUnit + 1));
  EXPECT_EQ(heap.size_of(0), kUnit + 1);
  EXPECT_EQ(heap.stats().used, 3 * kUnit);
  EXPECT_EQ(heap.allocate(2 * kUnit), 2 * kUnit) << "the released part can be allocated";
}

TEST(Heap, GrowsABlockIntoTheFreeOneAfterIt) {
  Heap heap(10 * kUnit);
  ASSERT_EQ(heap.allocate(kUnit), 0U);
  EXPECT_TRUE(heap.resize(0, kUnit)) << "to its current size";
  EXPECT_TRUE(heap.resize(0, 3 * kUnit));
  ASSERT_EQ(heap.allocate(kUnit), 3 * kUnit);
  EXPECT_FALSE(heap.resize(0, 3 * kUnit + 1)) << "the next block is in use";
  EXPECT_EQ(heap.size_of(0), 3 * kUnit) << "a refused call changes nothing";
  EXPECT_TRUE(heap.resize(3 * kUnit, 7 * kUnit)) << "to the end of the heap";
  EXPECT_FALSE(heap.resize(3 * kUnit, 7 * kUnit + 1));
  EXPECT_FALSE(heap.resize(3 * kUnit, std::numeric_limits<std::size_t>::max()));
  EXPECT_EQ(heap.stats().largest_free, 0U);
  EXPECT_FALSE(heap.resize(kUnit, kUnit)) << "not the start of a block";
}

TEST(Heap, FindsTheBlockAroundAnOffset) {
  Heap heap(10 * kUnit);
  ASSERT_EQ(heap.allocate(kUnit), 0U);
  ASSERT_EQ(heap.allocate(kUnit + 1), kUnit);
  const auto live = heap.block_around(2 * kUnit + 5);
  ASSERT_TRUE(live);
  EXPECT_EQ(live->offset, kUnit);
  EXPECT_EQ(live->requested, kUnit + 1);
  EXPECT_TRUE(heap.block_around(3 * kUnit)->free());
  EXPECT_FALSE(heap.block_around(10 * kUnit));
  EXPECT_EQ(heap.stats().live_blocks, 2U);
}

/// A model with the same guarantees, but simple: it examines every free block.
class PlainHeap {
 public:
  explicit PlainHeap(std::size_t size) : size_(size) { free_.emplace(0, size); }

  std::optional<std::size_t> allocate(std::size_t size, std::size_t alignment) {
    for (const auto& [start, length] : free_) {
      const std::size_t offset = round_up(start, std::max(alignment, kUnit));
      const std::size_t end = offset + round_up(size, kUnit);
      if (end > start + length) {
        continue;
      }
      take(start, start + length, offset, end);
      live_.emplace(offset, end - offset);
      return offset;
    }
    return std::nullopt;
  }
  void release(std::size_t offset) {
    give(offset, offset + live_.at(offset));
    live_.erase(offset);
  }
  bool resize(std::size_t offset, std::size_t size) {
    const std::size_t before = offset + live_.at(offset);
    const std::size_t after = offset + round_up(size, kUnit);
    const auto gap = free_.find(before);
    if (after > (gap != free_.end() ? before + gap->second : before)) {
      return false;
    }
    if (after > before) {
      take(before, before + gap->second, before, after);
    }
    if (after < before) {
      give(after, before);
    }
    live_.at(offset) = after - offset;
    return true;
  }
  [[nodiscard]] Heap::Stats stats() const {
    Heap::Stats stats{size_, 0, 0, live_.size()};
    for (const auto& [offset, taken] : live_) {
      stats.used += taken;
    }
    for (const auto& [start, length] : free_) {
      stats.largest_free = std::max(stats.largest_free, length);
    }
    return stats;
  }

 private:
  static std::size_t round_up(std::size_t value, std::size_t step) { return (value + step - 1) / step * step; }

  /// Takes [from, to) out of the free block [start, end).
  void take(std::size_t start, std::size_t end, std::size_t from, std::size_t to) {
    free_.erase(start);
    if (from > start) {
      free_.emplace(start, from - start);
    }
    if (end > to) {
      free_.emplace(to, end - to);
    }
  }
  void give(std::size_t from, std::size_t to) {
    auto gap = free_.emplace(from, to - from).first;
    if (const auto next = std::next(gap); next != free_.end() && next->first == to) {
      gap->second += next->second;
      free_.erase(next);
    }
    if (gap == free_.begin()) {
      return;
    }
    if (const auto previous = std::prev(gap); previous->first + previous->second == from) {
      previous->second += gap->second;
      free_.erase(gap);
    }
  }

  std::size_t size_;
  std::map<std::size_t, std::size_t> free_, live_;  // offset -> size
};

bool same_stats(const Heap::Stats& a, const Heap::Stats& b) {
  return std::tie(a.size, a.used, a.largest_free, a.live_blocks) ==
         std::tie(b.size, b.used, b.largest_free, b.live_blocks);
}

/// Runs a heap and its model with the same random operations. About `target` blocks are live most of the time.
class RandomOperations {
 public:
  RandomOperations(std::size_t size, std::size_t target) : heap_(size), model_(size), target_(target) {}

  void one() {
    const std::size_t kind = below(100);
    if (live_.empty() || (live_.size() < target_ ? kind < 60 : kind < 40)) {
      allocate();
    } else if (kind < 85) {
      release();
    } else {
      resize();
    }
    if (++operations_ % 64 == 0) {
      ASSERT_TRUE(same_stats(heap_.stats(), model_.stats())) << "operation " << operations_;
    }
  }

 private:
  std::size_t below(std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_); }
  std::size_t some_size() { return 1 + below(below(8) == 0 ? 100 * kUnit : 6 * kUnit); }

  void allocate() {
    const std::size_t size = some_size();
    const std::size_t alignment = below(2) == 0 ? 1 : std::size_t{1} << below(15);
    const auto offset = heap_.allocate(size, alignment);
    ASSERT_EQ(offset, model_.allocate(size, alignment)) << "operation " << operations_;
    if (offset) {
      live_.push_back(*offset);
    }
  }
  void release() {
    std::swap(live_[below(live_.size())], live_.back());
    ASSERT_TRUE(heap_.release(live_.back())) << "operation " << operations_;
    model_.release(live_.back());
    live_.pop_back();
  }
  void resize() {
    const std::size_t offset = live_[below(live_.size())];
    const std::size_t size = some_size();
    ASSERT_EQ(heap_.resize(offset, size), model_.resize(offset, size)) << "operation " << operations_;
  }

  Heap heap_;
  PlainHeap model_;
  std::size_t target_;
  std::vector<std::size_t> live_;
  std::size_t operations_ = 0;
  std::mt19937 random_{20240607};  // NOLINT: the same operations each time
};

TEST(Heap, AgreesWithAPlainHeapOverRandomOperations) {
  const int repeats = test_support::repeats(100'000, 500'000);
  RandomOperations roomy(std::size_t{1} << 20, 1000);
  RandomOperations full(512 * kUnit, 1000);
  for (int i = 0; i < repeats && !HasFatalFailure(); ++i) {
    roomy.one();
    full.one();
  }
}

TEST(BlockTree, StaysBalancedAsItGrowsAndShrinks) {
  constexpr std::size_t kBlocks = 20'000;
  BlockTree tree({0, kBlocks, 0});
  const auto low_enough = [&](std::size_t blocks) {
    return tree.height() <= 1.45 * std::log2(static_cast<double>(blocks) + 2);
  };
  BlockTree::Index last = 0;
  for (std::size_t i = 1; i < kBlocks; ++i) {  // always inserts at the end
    tree.set(last, {i - 1, 1, i % 2});
    last = tree.insert_after(last, {i, kBlocks - i, 0});
    ASSERT_TRUE(low_enough(i + 1)) << tree.height();
  }
  for (std::size_t i = 1; i < kBlocks / 2; ++i) {  // always removes the second one
    tree.erase(tree.next(tree.find(0)));
    ASSERT_TRUE(low_enough(kBlocks - i)) << tree.height();
  }
}

TEST(BlockTree, IteratesForwardAndBackInOrder) {
  BlockTree tree({0, 10, 0});
  BlockTree::Index index = 0;
  for (std::size_t i = 1; i < 10; ++i) {
    tree.set(index, {i - 1, 1, 0});
    index = tree.insert_after(index, {i, 10 - i, 0});
  }
  for (std::size_t i = 9; i > 0; --i) {
    ASSERT_EQ(tree[index].offset, i);
    index = tree.previous(index);
  }
  EXPECT_EQ(tree.previous(index), BlockTree::kNone);
  for (std::size_t i = 0; i < 10; ++i) {
    ASSERT_EQ(tree[index].offset, i);
    index = tree.next(index);
  }
  EXPECT_EQ(index, BlockTree::kNone);
}

TEST(Heap, AdoptsTheBlocksOfAnotherHeap) {
  Heap heap(1 << 20);
  const auto first = heap.allocate(100);
  ASSERT_TRUE(heap.allocate(4096, 4096));
  ASSERT_TRUE(heap.allocate(1));
  ASSERT_TRUE(heap.release(*first));
  Heap other(1 << 20);
  ASSERT_TRUE(other.adopt(heap.blocks()));
  EXPECT_EQ(other.stats().used, heap.stats().used);
  EXPECT_EQ(other.stats().live_blocks, heap.stats().live_blocks);
  EXPECT_EQ(other.stats().largest_free, heap.stats().largest_free);
  for (const std::size_t size : {64, 5000, 1}) {
    EXPECT_EQ(other.allocate(size), heap.allocate(size));
  }
  EXPECT_FALSE(Heap(1 << 19).adopt(heap.blocks()));
  EXPECT_FALSE(Heap(1 << 20).adopt({}));
}

}  // namespace
}  // namespace shmem
