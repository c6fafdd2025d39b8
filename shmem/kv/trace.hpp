// SPDX-License-Identifier: Apache-2.0
// Request traces of serving systems, one request at a time: a trace may be larger than memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shmem/result.hpp"

namespace shmem::kv {

struct Request {
  std::int64_t arrival_ms;  // from some time of the trace's own
  std::int64_t input_tokens;
  std::int64_t output_tokens;
  // Ids of the prompt's first blocks of kTokensOfPrefixBlock; equal ids are equal prompts up to the block's end.
  std::vector<std::int64_t> prefix_blocks;

  /// What its sequence holds in the cache when it is done.
  [[nodiscard]] std::int64_t tokens() const { return input_tokens + output_tokens; }
};

constexpr std::int64_t kTokensOfPrefixBlock = 512;
/// More tokens than any request has.
constexpr std::int64_t kMostTokens = std::int64_t{1} << 31;

/// Requests in order of the trace, none before the last one's arrival. Used by one thread at a time.
class Trace {
 public:
  Trace() = default;
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  virtual ~Trace() = default;

  /// The next request, or nothing at the end. An Error about what the trace holds begins with FILE:LINE.
  virtual Result<std::optional<Request>> next() = 0;
  /// Back to the first request.
  virtual Result<void> rewind() = 0;
  /// For people.
  [[nodiscard]] virtual std::string name() const = 0;
};

}  // namespace shmem::kv
