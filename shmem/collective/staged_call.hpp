// SPDX-License-Identifier: Apache-2.0
// A collective call of a group, and what its members compare before they make it.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "shmem/collective/typed_reduction.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// As shmemx_group_call_t.
struct StagedCall {
  enum Kind : std::int32_t {
    kBarrier,
    kBroadcast,
    kAllreduce,
    kReduce,
    kAllgather,
    kGather,
    kScatter,
    kReduceScatter,
    kAlltoall
  };
  Kind kind = kBarrier;
  ElementType type = ElementType::kBytes;
  ElementOperation operation = ElementOperation::kSum;
  int root = 0;
  std::size_t bytes = 0;
  const void* const* from = nullptr;
  void* const* to = nullptr;
  const std::uint64_t* from_bytes = nullptr;  // kAlltoall
  const std::uint64_t* to_bytes = nullptr;
  std::uint32_t signature = 0;
  bool leaves = false;  // a barrier of members that leave the group; with another call it is the end of the group
};

inline bool combines(std::int32_t kind) {
  return kind == StagedCall::kAllreduce || kind == StagedCall::kReduce || kind == StagedCall::kReduceScatter;
}
inline bool has_root(std::int32_t kind) {
  return kind == StagedCall::kBroadcast || kind == StagedCall::kReduce || kind == StagedCall::kGather ||
         kind == StagedCall::kScatter;
}
/// A member's contribution is a block for each member.
inline bool has_blocks(std::int32_t kind) {
  return kind == StagedCall::kScatter || kind == StagedCall::kReduceScatter || kind == StagedCall::kAlltoall;
}
/// Each member combines its share of the contributions for all that take sums.
inline bool shares_sums(std::int32_t kind) {
  return combines(kind) && !has_blocks(kind);
}
/// Whether that member has a contribution.
inline bool gives(const StagedCall& call, int member) {
  const bool of_root = call.kind == StagedCall::kBroadcast || call.kind == StagedCall::kScatter;
  return call.kind != StagedCall::kBarrier && (!of_root || call.root == member);
}
/// Whether that member takes sums of what all give.
inline bool takes_sums(const StagedCall& call, int member) {
  return combines(call.kind) && (call.kind != StagedCall::kReduce || call.root == member);
}
/// The bytes of a block that a member gives, and of what it takes from another one.
inline std::size_t given_bytes(const StagedCall& call, std::size_t block) {
  return call.kind == StagedCall::kAlltoall ? call.from_bytes[block] : call.bytes;
}
inline std::size_t taken_bytes(const StagedCall& call, std::size_t member) {
  return call.kind == StagedCall::kAlltoall ? call.to_bytes[member] : call.bytes;
}

/// What members tell each other at first. `flags` are of one member: these, and others that its algorithm defines.
struct CallHead {
  static constexpr std::uint64_t kRefused = 1;                      // it cannot make the call
  static constexpr std::uint64_t kLeaves = std::uint64_t{1} << 63;  // StagedCall::leaves
  std::int16_t kind, type;
  std::int32_t operation, root;
  std::uint32_t signature;
  std::uint64_t bytes;
  std::uint64_t flags;
};
static_assert(sizeof(CallHead) == 32, "small calls have it and their data in one cache line");
CallHead head_of(const StagedCall& call, std::uint64_t flags);

/// Why a group of so many members cannot make the call; "": it can.
std::string problem_of(const StagedCall& call, int members);

/// An Error, which names a member, unless all heads are of the same call. Every member comes to the same outcome.
/// connection_reset: a member leaves the group. invalid_argument: all others.
Result<void> compare_heads(int me, std::span<const CallHead* const> heads);

/// The bytes from each member to each of an alltoall, as both sides say: a row of each member, which they exchange.
class BlockSizes {
 public:
  BlockSizes(const StagedCall& call, int members);
  [[nodiscard]] std::size_t row_bytes() const { return 2 * members_ * sizeof(std::uint64_t); }
  [[nodiscard]] const std::uint64_t* my_row() const { return mine_.data(); }
  /// All that this member gives.
  [[nodiscard]] std::uint64_t all_given() const {
    return std::accumulate(mine_.begin(), mine_.begin() + static_cast<std::ptrdiff_t>(members_), std::uint64_t{0});
  }
  [[nodiscard]] std::uint64_t* row(int member) { return &rows_[static_cast<std::size_t>(member) * 2 * members_]; }

  // Once all rows are set.
  [[nodiscard]] std::uint64_t given(int from, int to) const {
    return rows_[static_cast<std::size_t>(from) * 2 * members_ + static_cast<std::size_t>(to)];
  }
  [[nodiscard]] std::uint64_t expected(int by, int from) const {
    return rows_[(static_cast<std::size_t>(by) * 2 + 1) * members_ + static_cast<std::size_t>(from)];
  }
  /// Where a block begins if they follow each other.
  [[nodiscard]] std::uint64_t begin(int from, int to) const {
    const std::uint64_t* const row = &rows_[static_cast<std::size_t>(from) * 2 * members_];
    return std::accumulate(row, row + to, std::uint64_t{0});
  }
  /// The longest of the blocks for which counts(from, to) is true.
  template <typename Counts>
  [[nodiscard]] std::uint64_t longest(Counts counts) const {
    std::uint64_t most = 0;
    for (int from = 0; from < static_cast<int>(members_); ++from) {
      for (int to = 0; to < static_cast<int>(members_); ++to) {
        most = counts(from, to) ? std::max(most, given(from, to)) : most;
      }
    }
    return most;
  }
  /// An Error unless each member expects what the others give. The same on all.
  [[nodiscard]] Result<void> compare(int me) const;

 private:
  std::size_t members_;
  std::vector<std::uint64_t> mine_;  // what this member gives to each, then what it expects from each
  std::vector<std::uint64_t> rows_;
};

}  // namespace shmem
