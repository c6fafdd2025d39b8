// SPDX-License-Identifier: Apache-2.0
// The data of the kv_shuffle benchmark: the caches of two PEs, and the moves of their blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/// One measurement of a worker.
struct KvPart {
  bool both_ways = false;    // else PE 0 sends and PE 1 receives
  bool few = false;          // kFewBlocks of K and of V; else `bytes`
  bool same = false;         // of few: the same ones each time, which the caches then hold; else others
  int cores = 1;             // threads of a PE that copy
  std::size_t bytes = 0;     // what a PE sends in one shuffle of many
  std::string path{"auto"};  // or "direct", "scratch"
};

/// Converts to one word of a command line, and back.
std::string text_of(const KvPart& part);
KvPart kv_part(const std::string& text);

constexpr std::size_t kKvBlocks[] = {1 << 10, 4 << 10, 16 << 10, 64 << 10, 128 << 10, 1 << 20};
constexpr std::size_t kFewBlocks = 16;

/// K and V apart: [layers][blocks] blocks of `block` bytes each.
struct KvShape {
  std::size_t block = 0;
  std::size_t layers = 1;
  std::size_t blocks = 0;
};

/// Four times as many blocks as a shuffle of many moves.
KvShape shape_of(const KvPart& part, std::size_t block);
/// Moves of one shuffle, and bytes that a PE sends with them.
std::size_t moves_of(const KvPart& part, std::size_t block);
std::size_t bytes_moved(const KvPart& part, std::size_t block);

/// A move of the block in all layers, of K and of V.
struct KvMove {
  std::int64_t from, to;
};

/// The memory of this PE, and that of its partner as mapped here.
struct KvCaches {
  char* k = nullptr;
  char* v = nullptr;
  char* k_there = nullptr;
  char* v_there = nullptr;
};

/// One block: its destination as mapped here, the symmetric address of the destination, and its source.
struct KvPiece {
  char* to;
  char* symmetric;
  const char* from;
};

/// Moves of `count` blocks from all over the lower half of the cache to all over the upper half.
std::vector<KvMove> scattered_moves(const KvShape& shape, std::size_t count);

/// The blocks of `moves` one by one, layer by layer.
std::vector<KvPiece> pieces_of(const KvCaches& caches, const KvShape& shape, const std::vector<KvMove>& moves);

}  // namespace bench
