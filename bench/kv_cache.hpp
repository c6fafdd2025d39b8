// SPDX-License-Identifier: Apache-2.0
// What is measured of kv_shuffle: the caches of two PEs, and which of their blocks go where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/// What a worker measures.
struct KvPart {
  bool both_ways = false;    // else PE 0 sends and PE 1 receives
  bool few = false;          // kFewBlocks of K and of V; else `bytes`
  bool same = false;         // of few: the same ones each time, which the caches then hold; else others
  int cores = 1;             // threads of a PE that copy
  std::size_t bytes = 0;     // what a PE sends in one shuffle of many
  std::string path{"auto"};  // or "direct", "scratch"
};

/// As one word of a command line, and back.
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

/// In all layers, of K and of V.
struct KvMove {
  std::int64_t from, to;
};

/// Memory of this PE, and that of its partner as it is seen from here.
struct KvCaches {
  char* k = nullptr;
  char* v = nullptr;
  char* k_there = nullptr;
  char* v_there = nullptr;
};

/// One block: where it goes, what that is called here, and where it comes from.
struct KvPiece {
  char* to;
  char* symmetric;
  const char* from;
};

/// Of so many blocks in the lower half of the cache to places in the upper half, both all over it.
std::vector<KvMove> scattered_moves(const KvShape& shape, std::size_t count);

/// The blocks of `moves` one by one, layer by layer.
std::vector<KvPiece> pieces_of(const KvCaches& caches, const KvShape& shape, const std::vector<KvMove>& moves);

}  // namespace bench
