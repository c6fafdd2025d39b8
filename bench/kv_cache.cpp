// SPDX-License-Identifier: Apache-2.0
#include "bench/kv_cache.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <sstream>
#include <stdexcept>

namespace bench {
namespace {

/// Blocks per layer in one shuffle of many blocks; the size determines the layers.
constexpr std::size_t kManyBlocks = 256;

/// The same in each run and on both PEs.
std::mt19937& generator() {
  static std::mt19937 random{1};
  return random;
}

std::vector<std::int64_t> shuffled(std::size_t first, std::size_t count) {
  std::vector<std::int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), static_cast<std::int64_t>(first));
  std::shuffle(numbers.begin(), numbers.end(), generator());
  return numbers;
}

}  // namespace

std::size_t moves_of(const KvPart& part, std::size_t block) {
  return part.few ? std::min(kFewBlocks, part.bytes / block)
                  : std::clamp(part.bytes / 2 / block, std::size_t{1}, kManyBlocks);
}

KvShape shape_of(const KvPart& part, std::size_t block) {
  const std::size_t layers = part.few ? 1 : std::max(part.bytes / 2 / block / kManyBlocks, std::size_t{1});
  return {block, layers, 2 * part.bytes / block / layers};
}

std::string text_of(const KvPart& part) {
  std::ostringstream text;
  text << part.both_ways << ',' << part.few << ',' << part.same << ',' << part.cores << ',' << part.bytes << ','
       << part.path;
  return text.str();
}

KvPart kv_part(const std::string& text) {
  std::istringstream in(text);
  KvPart part;
  char comma = 0;
  if (!(in >> part.both_ways >> comma >> part.few >> comma >> part.same >> comma >> part.cores >> comma >> part.bytes >>
        comma >> part.path)) {
    throw std::runtime_error("not a part of a benchmark: " + text);
  }
  return part;
}

std::size_t bytes_moved(const KvPart& part, std::size_t block) {
  return 2 * moves_of(part, block) * shape_of(part, block).layers * block;
}

std::vector<KvMove> scattered_moves(const KvShape& shape, std::size_t count) {
  const std::size_t half = shape.blocks / 2;
  const auto from = shuffled(0, half);
  const auto to = shuffled(half, half);
  std::vector<KvMove> moves;
  for (std::size_t i = 0; i < count; ++i) {
    moves.push_back({from[i], to[i]});
  }
  return moves;
}

std::vector<KvPiece> pieces_of(const KvCaches& caches, const KvShape& shape, const std::vector<KvMove>& moves) {
  std::vector<KvPiece> pieces;
  for (std::size_t layer = 0; layer < shape.layers; ++layer) {
    for (const KvMove& move : moves) {
      const auto place = [&](std::int64_t block) {
        return (layer * shape.blocks + static_cast<std::size_t>(block)) * shape.block;
      };
      pieces.push_back({caches.k_there + place(move.to), caches.k + place(move.to), caches.k + place(move.from)});
      pieces.push_back({caches.v_there + place(move.to), caches.v + place(move.to), caches.v + place(move.from)});
    }
  }
  return pieces;
}

}  // namespace bench
