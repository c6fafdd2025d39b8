// SPDX-License-Identifier: Apache-2.0
// Requests of a PE to access the memory of another PE if no adapter can, and the answers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shmem/net/network.hpp"

namespace shmem {

enum class RequestKind : std::uint8_t {
  kPut,     // stores the bytes that follow
  kGet,     // `operand` bytes, in one or more answers
  kAtomic,  // answered with the value before, if it has a number
  kFlush,   // answered when all earlier requests are done
};

/// Precedes the bytes, if there are any. Nodes of one job have the same architecture.
struct Request {
  RequestKind kind = RequestKind::kFlush;
  Segment segment = Segment::kHeap;
  AtomicOperation operation = AtomicOperation::kFetch;
  std::uint8_t word_size = 0;
  std::uint16_t from = 0;      // the requesting PE
  std::uint16_t sequence = 0;  // of its requests to this PE, from 0, wrapping around
  std::uint64_t offset = 0;    // in the segment
  std::uint64_t number = 0;    // of its answers; 0: no answer
  std::uint64_t operand = 0;
  std::uint64_t compared = 0;
  std::uint64_t job = 0;  // JobAddresses::job: a request of another job is not carried out
};
static_assert(sizeof(Request) == 48);

/// Why a PE's request is not carried out, nor any later one of it that depends on order.
enum class Refusal : std::uint64_t {
  kNone,
  kMemory,  // this request or an earlier one was invalid
  kOrder,   // an earlier request is missing, or this one has come before
};

struct Answer {
  std::uint64_t number = 0;
  std::uint64_t value = 0;  // of a word; for a get, the offset of these bytes in the requested ones
  Refusal refused = Refusal::kNone;
  std::uint64_t job = 0;  // as in a Request
};

/// One PE's segments, accessed by requests of others. No request accesses memory outside the segments. Segments may
/// come and go while another thread serves requests for others.
class RequestedMemory {
 public:
  explicit RequestedMemory(const std::vector<std::span<std::byte>>& segments);

  void add(Segment segment, std::span<std::byte> memory);
  void remove(Segment segment) { add(segment, {}); }

  /// False: the bytes exceed the segment. A word is written atomically, after earlier puts.
  [[nodiscard]] bool put(const Request& request, std::span<const std::byte> bytes) const;
  /// Nothing if the bytes exceed the segment.
  [[nodiscard]] std::optional<std::span<const std::byte>> get(const Request& request) const;
  /// The word's value before. Nothing for an invalid word or operation.
  [[nodiscard]] std::optional<std::uint64_t> change(const Request& request) const;

 private:
  [[nodiscard]] std::optional<std::span<std::byte>> find(const Request& request, std::uint64_t bytes) const;

  struct Memory {
    std::atomic<std::byte*> begin{nullptr};
    std::atomic<std::size_t> bytes{0};
  };
  std::array<Memory, kMostSegments> segments_;
};

}  // namespace shmem
