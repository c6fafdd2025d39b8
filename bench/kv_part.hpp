// SPDX-License-Identifier: Apache-2.0
// What bench_kv and its jobs agree on: the parts of the measurement, and the blocks that a shuffle moves.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace bench {

constexpr std::size_t kKvBlocks[] = {1 << 10, 4 << 10, 16 << 10, 64 << 10, 128 << 10, 1 << 20};
constexpr std::size_t kFewBlocks = 16;
/// Blocks per layer in one shuffle of many blocks; the size determines the layers.
constexpr std::size_t kManyBlocks = 256;

/// K and V apart: [layers][blocks] blocks of `block` bytes each.
struct KvShape {
  std::size_t block = 0;
  std::size_t layers = 1;
  std::size_t blocks = 0;
};

/// One measurement of a job.
struct KvPart {
  bool both_ways = false;    // else PE 0 sends and PE 1 receives
  bool few = false;          // kFewBlocks of K and of V; else `bytes`
  bool same = false;         // of few: the same ones each time, which the caches then hold; else others
  int cores = 1;             // threads of a PE that copy
  std::size_t bytes = 0;     // what a PE sends in one shuffle of many
  std::string path{"auto"};  // or "direct", "scratch"

  /// Moves of one shuffle.
  [[nodiscard]] std::size_t moves(std::size_t block) const {
    return few ? std::min(kFewBlocks, bytes / block) : std::clamp(bytes / 2 / block, std::size_t{1}, kManyBlocks);
  }
  /// Four times as many blocks as a shuffle of many moves.
  [[nodiscard]] KvShape shape(std::size_t block) const {
    const std::size_t layers = few ? 1 : std::max(bytes / 2 / block / kManyBlocks, std::size_t{1});
    return {block, layers, 2 * bytes / block / layers};
  }
  /// Bytes that a PE sends with one shuffle.
  [[nodiscard]] std::size_t bytes_moved(std::size_t block) const {
    return 2 * moves(block) * shape(block).layers * block;
  }

  /// Words of a command line, and back.
  [[nodiscard]] std::vector<std::string> words() const {
    return {std::to_string(both_ways), std::to_string(few),   std::to_string(same),
            std::to_string(cores),     std::to_string(bytes), path};
  }
  static KvPart of(const std::vector<std::string>& words) {
    return {.both_ways = words.at(0) == "1",
            .few = words.at(1) == "1",
            .same = words.at(2) == "1",
            .cores = std::stoi(words.at(3)),
            .bytes = std::stoul(words.at(4)),
            .path = words.at(5)};
  }
};

}  // namespace bench
