// SPDX-License-Identifier: Apache-2.0
// Traces as the members of a replay read them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tools/kv_shuffle/trace.hpp"

namespace exchange_replay {

/// The traces have two to six requests a second; one that moves slowly enough for a test has little to do.
constexpr std::int64_t kFaster = 10;
constexpr std::uint64_t kOfOneRequest = std::uint64_t{1} << 40;

/// The first requests of a trace, as lines for the members: microseconds, the number of blocks, their numbers. A trace
/// that does not name the blocks of a prompt has blocks that no two requests share.
inline std::string lines_of(kv_program::Trace& trace, std::uint64_t first_block) {
  constexpr int kMost = 20'000;
  std::string lines;
  std::int64_t first_ms = -1;
  for (int i = 0; i < kMost; ++i) {
    auto request = trace.next();
    EXPECT_TRUE(request) << request.error().text;
    if (!request || !*request) {
      break;
    }
    first_ms = first_ms < 0 ? (*request)->arrival_ms : first_ms;
    std::vector<std::uint64_t> blocks;
    for (const std::int64_t block : (*request)->prefix_blocks) {
      blocks.push_back(first_block + static_cast<std::uint64_t>(block));
    }
    for (std::int64_t token = 0; blocks.empty() || token < (*request)->input_tokens;
         token += kv_program::kTokensOfPrefixBlock) {
      if ((*request)->prefix_blocks.empty()) {
        blocks.push_back(first_block + kOfOneRequest + static_cast<std::uint64_t>(i) * 4096 + blocks.size());
      }
    }
    lines += std::to_string(((*request)->arrival_ms - first_ms) * 1000 / kFaster) + " " + std::to_string(blocks.size());
    for (const std::uint64_t block : blocks) {
      lines += " " + std::to_string(block);
    }
    lines += "\n";
  }
  return lines;
}

}  // namespace exchange_replay
