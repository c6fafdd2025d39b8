// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/builtin_trace.hpp"

namespace shmem::kv {

/// SplitMix64: equal on all machines, which the standard library's distributions are not.
std::uint64_t BuiltinTrace::random() {
  state_ += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

Result<std::optional<Request>> BuiltinTrace::next() {
  if (given_ == kRequests) {
    return std::optional<Request>{};
  }
  ++given_;
  now_ms_ += static_cast<std::int64_t>(random() % 500);
  // Uniform within an octave, and the octave uniform: 64 to 16383 tokens.
  const std::uint64_t octave = std::uint64_t{64} << (random() % 8);
  const auto input = static_cast<std::int64_t>(octave + random() % octave);
  const auto output = static_cast<std::int64_t>(1 + random() % 500);
  return std::optional(Request{now_ms_, input, output, {}});
}

Result<void> BuiltinTrace::rewind() {
  state_ = 0;
  given_ = 0;
  now_ms_ = 0;
  return {};
}

}  // namespace shmem::kv
