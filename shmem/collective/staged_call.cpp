// SPDX-License-Identifier: Apache-2.0
#include "shmem/collective/staged_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace shmem {
namespace {

constexpr std::array kKindNames{"barrier", "broadcast", "allreduce",      "reduce",  "allgather",
                                "gather",  "scatter",   "reduce_scatter", "alltoall"};

std::string head_text(const CallHead& head) {
  if ((head.flags & CallHead::kRefused) != 0) {
    return "a call that cannot be made";
  }
  std::string text = kKindNames[static_cast<std::size_t>(head.kind)];
  if (head.kind != StagedCall::kBarrier && head.kind != StagedCall::kAlltoall) {
    text += fmt::format(" of {} bytes", head.bytes);
  }
  if (head.operation >= 0) {
    text += fmt::format(", {}", name_of(static_cast<ElementOperation>(head.operation)));
  }
  if (head.kind != StagedCall::kBarrier) {
    text += fmt::format(", type {}", name_of(static_cast<ElementType>(head.type)));
  }
  return text + (head.root >= 0 ? fmt::format(", root {}", head.root) : "");
}

bool sum_fits(const std::uint64_t* sizes, int members) {
  std::uint64_t room = PTRDIFF_MAX;
  return std::all_of(sizes, sizes + members, [&](std::uint64_t bytes) {
    const bool fits = bytes <= room;
    room -= fits ? bytes : 0;
    return fits;
  });
}

bool leaves(const CallHead& head) {
  return (head.flags & CallHead::kLeaves) != 0;
}

bool same_call(const CallHead& one, const CallHead& other) {
  return one.kind == other.kind && one.type == other.type && one.operation == other.operation &&
         one.root == other.root && one.bytes == other.bytes && one.signature == other.signature;
}

}  // namespace

CallHead head_of(const StagedCall& call, std::uint64_t flags) {
  CallHead head{.kind = static_cast<std::int16_t>(call.kind),
                .type = static_cast<std::int16_t>(call.type),
                .operation = -1,
                .root = -1,
                .signature = call.signature,
                .bytes = call.kind == StagedCall::kAlltoall || call.kind == StagedCall::kBarrier ? 0 : call.bytes,
                .flags = flags | (call.leaves ? CallHead::kLeaves : 0)};
  if (combines(call.kind)) {
    head.operation = static_cast<std::int32_t>(call.operation);
  }
  if (has_root(call.kind)) {
    head.root = call.root;
  }
  return head;
}

std::string problem_of(const StagedCall& call, int members) {
  const auto kind = static_cast<std::size_t>(call.kind);
  if (kind >= kKindNames.size()) {
    return fmt::format("there is no call of kind {}", static_cast<int>(call.kind));
  }
  if (has_root(call.kind) && (call.root < 0 || call.root >= members)) {
    return fmt::format("{}: the root is {}, not one of {} ranks", kKindNames[kind], call.root, members);
  }
  if (combines(call.kind)) {
    const auto found = typed_reduction(call.type, call.operation);
    if (!found) {
      return fmt::format("{}: there is no {} of type {}", kKindNames[kind], name_of(call.operation),
                         name_of(call.type));
    }
    if (call.bytes % found->reduction.element != 0) {
      return fmt::format("{}: {} bytes are no whole number of elements of type {}", kKindNames[kind], call.bytes,
                         name_of(call.type));
    }
  }
  if (call.kind == StagedCall::kAlltoall &&
      (!sum_fits(call.from_bytes, members) || !sum_fits(call.to_bytes, members))) {
    return fmt::format("{}: the sizes add up to more than any memory has", kKindNames[kind]);
  }
  return "";
}

Result<void> compare_heads(int me, std::span<const CallHead* const> heads) {
  const CallHead& first = *heads[0];
  for (std::size_t member = 1; member < heads.size(); ++member) {
    if (const bool it_leaves = leaves(*heads[member]); it_leaves != leaves(first)) {
      return fail(std::errc::connection_reset,
                  fmt::format("shmem: PE {}: PE {} has left the group", me, it_leaves ? member : 0));
    }
  }
  for (std::size_t member = 0; member < heads.size(); ++member) {
    const CallHead& theirs = *heads[member];
    if ((theirs.flags & CallHead::kRefused) != 0) {
      return fail(std::errc::invalid_argument,
                  fmt::format("shmem: PE {}: PE {} cannot make this call; its message says why", me, member));
    }
    if (!same_call(theirs, first)) {
      const bool same_text = head_text(theirs) == head_text(first);
      return fail(
          std::errc::invalid_argument,
          fmt::format("shmem: PE {}: the calls differ: PE 0 makes {}; PE {} makes {}", me, head_text(first), member,
                      same_text ? "one whose signature (its shape, for instance) is another" : head_text(theirs)));
    }
  }
  return {};
}

BlockSizes::BlockSizes(const StagedCall& call, int members)
    : members_(static_cast<std::size_t>(members)),
      mine_(call.from_bytes, call.from_bytes + members),
      rows_(2 * members_ * members_) {
  mine_.insert(mine_.end(), call.to_bytes, call.to_bytes + members);
}

Result<void> BlockSizes::compare(int me) const {
  const int members = static_cast<int>(members_);
  for (int from = 0; from < members; ++from) {
    for (int to = 0; to < members; ++to) {
      if (given(from, to) != expected(to, from)) {
        return fail(std::errc::invalid_argument,
                    fmt::format("shmem: PE {}: the calls differ: in alltoall, PE {} gives {} bytes to PE {}, which "
                                "expects {}",
                                me, from, given(from, to), to, expected(to, from)));
      }
    }
  }
  return {};
}

}  // namespace shmem
