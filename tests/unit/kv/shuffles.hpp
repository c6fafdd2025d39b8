// SPDX-License-Identifier: Apache-2.0
// What tests of shuffles share: the names that they use, plans, caches of three layers, and the expected outcomes.
#pragma once

#include <gmock/gmock.h>

#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/kv/played_pes.hpp"

namespace kv_test {

using shmem::kv::Mode;
using shmem::kv::Path;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using Caches = std::vector<std::vector<std::byte>>;
using Call = PlayedPes::Call;
using Change = PlayedPes::Change;

inline const auto kNoErrors = Each(Field(&shmem::Error::text, testing::IsEmpty()));

inline auto an_error(std::errc code, const std::string& text) {
  return testing::AllOf(Field(&shmem::Error::code, code), Field(&shmem::Error::text, HasSubstr(text)));
}

inline MovePlan copies(const std::vector<Move>& moves) {
  return *MovePlan::create(moves, Mode::kCopy);
}

/// Waits until `count` PEs are in a sync, or until the limit.
inline void wait_until_in_sync(PlayedPes& played, int count, std::chrono::seconds limit = std::chrono::seconds{20}) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (played.in_sync() < count && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
}

constexpr std::int64_t kLayers = 3;
inline Shape layered(Format format) {
  return {format, kLayers, 16, 1, 4, 16, 1};
}
/// In how many pieces consecutive blocks are copied.
constexpr std::pair<Format, std::size_t> kPieces[] = {{Format::kApart, 2 * kLayers},
                                                      {Format::kByLayer, 2 * kLayers},
                                                      {Format::kInterleaved, kLayers},
                                                      {Format::kByBlock, 1},
                                                      {Format::kLatent, kLayers}};
constexpr Shape kSmall{Format::kApart, 1, 4, 1, 4, 16, 1};

/// The pairs of a team of two in which PE 0 sends.
inline const std::vector<std::int64_t> kZeroSendsToOne{1, 0, 0, 1};

}  // namespace kv_test
