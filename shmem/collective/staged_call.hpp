// SPDX-License-Identifier: Apache-2.0
// A collective call of a group, and what its members compare before they make it.
#pragma once

#include <functional>
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
  return kind == StagedCall::kScatter || kind == StagedCall::kReduceScatter;
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
Result<void> compare_heads(int me, int members, const std::function<CallHead(int member)>& head);

/// The bytes from each member to each of an alltoall, as both sides say: a row of each member, which they exchange.
class BlockSizes {
 public:
  BlockSizes(const StagedCall& call, int members);
  [[nodiscard]] std::size_t row_bytes() const { return 2 * members_ * sizeof(std::uint64_t); }
  [[nodiscard]] const std::uint64_t* my_row() const { return mine_.data(); }
  [[nodiscard]] std::uint64_t* row(int member) { return &rows_[static_cast<std::size_t>(member) * 2 * members_]; }

  // Once all rows are set.
  [[nodiscard]] std::uint64_t given(int from, int to) const {
    return rows_[static_cast<std::size_t>(from) * 2 * members_ + static_cast<std::size_t>(to)];
  }
  [[nodiscard]] std::uint64_t expected(int by, int from) const {
    return rows_[(static_cast<std::size_t>(by) * 2 + 1) * members_ + static_cast<std::size_t>(from)];
  }
  /// An Error unless each member expects what the others give. The same on all.
  [[nodiscard]] Result<void> compare(int me) const;

 private:
  std::size_t members_;
  std::vector<std::uint64_t> mine_;  // what this member gives to each, then what it expects from each
  std::vector<std::uint64_t> rows_;
};

}  // namespace shmem
