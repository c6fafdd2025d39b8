// SPDX-License-Identifier: Apache-2.0
// What members of a replay do, and what is in blocks.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/kv/exchange_replay.hpp"

namespace exchange_replay {

constexpr std::size_t kWords = 4096;
constexpr std::size_t kBytes = kWords * sizeof(std::uint64_t);
constexpr std::size_t kMostOfRequest = 64;  // blocks
constexpr std::uint64_t kLimitNs = 60'000'000'000;

enum class Step { kReadPrompt, kFind, kPull };

struct Request {
  std::int64_t at_ns;
  Step step;
  std::size_t number;
  std::vector<std::uint64_t> blocks;
};

inline std::uint64_t word_of(std::uint64_t block, std::uint64_t layout, std::size_t i) {
  return (block * 0x9e37'79b9'7f4a'7c15U) ^ (layout + i) * 0xbf58'476d'1ce4'e5b9U;
}

inline std::string key_of(std::uint64_t block) {
  return "block " + std::to_string(block);
}

/// The requests of a member, as its two halves get them: a prompt is read when it arrives.
inline std::vector<Request> read_requests(const std::string& path, std::size_t number) {
  constexpr std::int64_t kFindNs = 100'000'000;
  constexpr std::int64_t kPullNs = 400'000'000;
  std::ifstream file(path);
  std::vector<Request> all;
  std::int64_t at_us = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; file >> at_us >> count; ++i) {
    std::vector<std::uint64_t> blocks(count);
    for (auto& block : blocks) {
      file >> block;
    }
    blocks.resize(std::min(count, kMostOfRequest));
    const std::size_t reads = i % kMembers;
    const std::size_t generates = (reads + 1 + i / kMembers % (kMembers - 1)) % kMembers;
    if (reads == number) {
      all.push_back({at_us * 1000, Step::kReadPrompt, i, blocks});
    }
    if (generates == number) {
      all.push_back({at_us * 1000 + kFindNs, Step::kFind, i, blocks});
      all.push_back({at_us * 1000 + kPullNs, Step::kPull, i, blocks});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.at_ns < b.at_ns; });
  return all;
}

/// A member that leaves while others still pull from it is not an error that they expect.
inline int leave_together(SharedBoard& board) {
  board->finished.fetch_add(1);
  const std::int64_t limit = clock_ns() + static_cast<std::int64_t>(kLimitNs);
  while (board->finished.load() < kMembers) {
    if (clock_ns() > limit) {
      std::printf("the others do not finish\n");
      return 1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return 0;
}

/// Serves requests when they arrive, until the board says stop. After the last request the first one comes again. A
/// member that was started again takes up what arrives now, and one that is late catches up.
template <typename Engine>
int serve_all(const std::vector<Request>& requests, SharedBoard& board, Engine& engine) {
  const std::int64_t round_ns = requests.back().at_ns + 1'000'000;
  for (std::int64_t round_begin = board->begin_ns.load();; round_begin += round_ns) {
    for (const Request& request : requests) {
      const std::int64_t due = round_begin + request.at_ns;
      std::int64_t early = 0;
      while ((early = due - clock_ns()) > 0 && !board->stop.load()) {
        std::this_thread::sleep_for(std::chrono::nanoseconds(std::min<std::int64_t>(early, 50'000'000)));
      }
      if (board->stop.load()) {
        return leave_together(board);
      }
      if (early > -500'000'000) {
        engine.serve(request);
      }
    }
  }
}

}  // namespace exchange_replay
