// SPDX-License-Identifier: Apache-2.0
// What one PE asks another to do to its memory where no adapter does it, and what that answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shmem/net/network.hpp"

namespace shmem {

enum class RequestKind : std::uint8_t {
  kPut,     // the bytes that come with it
  kGet,     // `operand` bytes, in one answer or more
  kAtomic,  // answered with what the word was, if it has a number
  kFlush,   // answered when all that was asked before is done
};

/// Goes before the bytes, if there are any. Nodes of one job have the same architecture.
struct Request {
  RequestKind kind = RequestKind::kFlush;
  Segment segment = Segment::kHeap;
  AtomicOperation operation = AtomicOperation::kFetch;
  std::uint8_t word_size = 0;
  std::int32_t from = 0;     // the PE that asks
  std::uint64_t offset = 0;  // in the segment
  std::uint64_t number = 0;  // that of its answers; 0: there is none
  std::uint64_t operand = 0;
  std::uint64_t compared = 0;
};
static_assert(sizeof(Request) == 40);

struct Answer {
  std::uint64_t number = 0;
  std::uint64_t value = 0;    // of a word; of what is got: how far its bytes are from the first one
  std::uint64_t refused = 0;  // 1: the request, or one before it, was none that could be done
};

/// One PE's segments, as others' requests change them. Whatever a request says, nothing beyond them is touched.
class RequestedMemory {
 public:
  explicit RequestedMemory(std::vector<std::span<std::byte>> segments) : segments_(std::move(segments)) {}

  /// False: it does not fit into the segment. A word is written whole, after all that was put before.
  [[nodiscard]] bool put(const Request& request, std::span<const std::byte> bytes) const;
  /// Nothing: they are not all in the segment.
  [[nodiscard]] std::optional<std::span<const std::byte>> get(const Request& request) const;
  /// What the word was before. Nothing: there is no such word or operation.
  [[nodiscard]] std::optional<std::uint64_t> change(const Request& request) const;

 private:
  [[nodiscard]] std::optional<std::span<std::byte>> find(const Request& request, std::uint64_t bytes) const;

  std::vector<std::span<std::byte>> segments_;
};

}  // namespace shmem
