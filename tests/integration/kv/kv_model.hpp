// SPDX-License-Identifier: Apache-2.0
// The expected results of shuffles, computed in the simplest way: all caches of all PEs are an array of
// [pe][layer][K, V][block][byte], a shuffle is a snapshot and one assignment per move. Shares no code with the library.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "shmemx.h"

namespace kv_model {

/// The same numbers for the same seeds, on all PEs.
class Random {
 public:
  Random(std::initializer_list<std::uint64_t> seeds) {
    std::seed_seq sequence(seeds.begin(), seeds.end());
    engine_.seed(sequence);
  }
  std::uint64_t next() { return engine_(); }
  /// 0 to `end` - 1.
  std::int64_t below(std::int64_t end) { return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(end)); }
  std::int64_t between(std::int64_t first, std::int64_t last) { return first + below(last - first + 1); }
  bool one_in(std::int64_t n) { return below(n) == 0; }
  template <typename T>
  void shuffle(std::vector<T>& list) {
    for (std::size_t i = list.size(); i > 1; --i) {
      std::swap(list[i - 1], list[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
    }
  }

 private:
  std::mt19937_64 engine_;
};

struct Slot {
  std::int64_t pe, block;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a 0 in it
  friend auto operator<=>(const Slot&, const Slot&) = default;
};
struct Move {
  Slot from, to;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a 0 in it
  friend auto operator<=>(const Move&, const Move&) = default;
};
using Moves = std::vector<Move>;

/// A random valid plan of one kind or of several kinds combined. Each move appears once.
Moves random_moves(Random& random, int pes, std::int64_t blocks, int mode);
/// The same moves in another order, some of them twice.
std::vector<shmemx_kv_move_t> as_given(Random& random, const Moves& moves);

struct PairPlan {
  std::vector<std::int64_t> table;  // [2 * pes]
  std::vector<Moves> sent;          // [pe]
  [[nodiscard]] Moves all() const;
};
PairPlan random_pairs(Random& random, int pes, std::int64_t blocks);

struct Shape {
  int format;
  int element_size;
  std::int64_t layers, blocks, heads, page, dim;

  [[nodiscard]] int sides() const { return format == SHMEMX_KV_LATENT ? 1 : 2; }
  [[nodiscard]] std::size_t block_bytes() const { return static_cast<std::size_t>(heads * page * dim * element_size); }
  /// The size of K and V of all layers.
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(layers * sides() * blocks) * block_bytes();
  }
  /// The size of the memory at `k`, and at `v` if the format has one.
  [[nodiscard]] std::size_t k_bytes() const { return format == SHMEMX_KV_APART ? bytes() / 2 : bytes(); }
  [[nodiscard]] std::string text() const;
};
Shape random_shape(Random& random, std::size_t most_bytes);

/// Where a block lies: an offset from `k` or `v`.
struct Place {
  bool in_v;
  std::size_t offset;
};
Place place_of(const Shape& shape, std::int64_t layer, int side, std::int64_t block);

/// The contents of the caches of all PEs.
class Caches {
 public:
  /// Fills the caches with random bytes.
  Caches(Random& random, int pes, const Shape& shape);

  [[nodiscard]] const Shape& shape() const { return shape_; }
  void apply(const Moves& moves, int mode);
  /// Changes all parts of a block.
  void change(const Slot& slot);

  using Block = std::vector<std::byte>;
  [[nodiscard]] const Block& block(std::int64_t pe, std::int64_t layer, int side, std::int64_t block) const {
    return blocks_[index(pe, layer, side, block)];
  }

 private:
  [[nodiscard]] std::size_t index(std::int64_t pe, std::int64_t layer, int side, std::int64_t block) const {
    return static_cast<std::size_t>(((pe * shape_.layers + layer) * shape_.sides() + side) * shape_.blocks + block);
  }

  Shape shape_;
  std::vector<Block> blocks_;
};

}  // namespace kv_model
