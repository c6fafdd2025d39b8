// SPDX-License-Identifier: Apache-2.0
#include "shmem/collective/direct.hpp"

#include <algorithm>
#include <numeric>
#include <span>

#include "shmem/collective/members.hpp"

namespace shmem {
namespace {

/// Up to this many bytes a copy costs less than the sync after a direct call. Calls whose members combine for each
/// other have such a sync anyway.
constexpr std::size_t kMostStaged = std::size_t{64} << 10;

bool is_faster_staged(const StagedCall& call, int members) {
  switch (call.kind) {
    case StagedCall::kBarrier:
      return true;
    case StagedCall::kAllreduce:
    case StagedCall::kReduce:
      return false;
    case StagedCall::kScatter:
    case StagedCall::kReduceScatter:
      return call.bytes * static_cast<std::size_t>(members) <= kMostStaged;
    case StagedCall::kAlltoall:
      return std::accumulate(call.from_bytes, call.from_bytes + members, std::uint64_t{0}) <= kMostStaged;
    case StagedCall::kBroadcast:
    case StagedCall::kAllgather:
    case StagedCall::kGather:
      break;
  }
  return call.bytes <= kMostStaged;
}

struct Extent {
  const std::byte* begin;
  std::size_t size;

  Extent(const void* at, std::size_t bytes) : begin(static_cast<const std::byte*>(at)), size(bytes) {}
  [[nodiscard]] bool overlaps(const Extent& other) const {
    return size != 0 && other.size != 0 && begin < other.begin + other.size && other.begin < begin + size;
  }
};
bool overlaps_in_part(const Extent& one, const Extent& other) {
  return one.overlaps(other) && one.begin != other.begin;
}

/// Whether this member writes to a buffer that others still read, but for its own block, which it reads itself.
bool overwrites(std::span<const Extent> read, std::span<const Extent> written, int own_read, int own_written) {
  for (std::size_t i = 0; i < read.size(); ++i) {
    for (std::size_t j = 0; j < written.size(); ++j) {
      const bool is_own = static_cast<int>(i) == own_read || static_cast<int>(j) == own_written;
      if (!is_own && read[i].overlaps(written[j])) {
        return true;
      }
    }
  }
  return false;
}

std::vector<Extent> extents(const void* const* buffers, int count, std::size_t bytes, const std::uint64_t* each) {
  std::vector<Extent> all;
  for (int i = 0; i < count; ++i) {
    all.emplace_back(buffers[i], each != nullptr ? each[i] : bytes);
  }
  return all;
}

/// Combines `size` bytes of all `from`, and writes the result to all `to`, which may be the same buffers.
void combine_directly(std::span<const std::byte* const> from, std::span<std::byte* const> to, std::size_t begin,
                      std::size_t size, const TypedReduction& reduction) {
  const auto members = static_cast<int>(from.size());
  combine_parts(
      reduction.reduction, size, members,
      [&](int member, std::size_t at, std::size_t) { return from[static_cast<std::size_t>(member)] + begin + at; },
      [&](std::size_t at, std::byte* sums, std::size_t part) {
        reduction.complete(sums, part, members);
        for (std::byte* one : to) {
          copy_cached(one + begin + at, sums, part);
        }
      });
}

}  // namespace

std::vector<SymmetricPlace> places_to_show(const StagedCall& call, const SymmetricMemories& memories, int me,
                                           int members) {
  if (is_faster_staged(call, members) || memories.empty()) {
    return {};
  }
  std::vector<Extent> read;
  std::vector<Extent> written;  // by this member
  const bool is_root = me == call.root;
  int own = -1;
  switch (call.kind) {
    case StagedCall::kBarrier:
      break;
    case StagedCall::kBroadcast:
      read = extents(call.from, is_root ? 1 : 0, call.bytes, nullptr);
      break;
    case StagedCall::kScatter:
      read = extents(call.from, is_root ? members : 0, call.bytes, nullptr);
      written = extents(call.to, 1, call.bytes, nullptr);
      own = me;
      break;
    case StagedCall::kGather:
      read = extents(call.from, 1, call.bytes, nullptr);  // the root reads its own before it writes
      break;
    case StagedCall::kAllgather:
      read = extents(call.from, 1, call.bytes, nullptr);
      written = extents(call.to, members, call.bytes, nullptr);
      if (overlaps_in_part(read[0], written[static_cast<std::size_t>(me)])) {
        return {};
      }
      break;
    case StagedCall::kReduceScatter:
      read = extents(call.from, members, call.bytes, nullptr);
      written = extents(call.to, 1, call.bytes, nullptr);
      own = me;
      if (overlaps_in_part(read[static_cast<std::size_t>(me)], written[0])) {
        return {};
      }
      break;
    case StagedCall::kAlltoall:
      read = extents(call.from, members, 0, call.from_bytes);
      written = extents(call.to, members, 0, call.to_bytes);
      own = me;
      break;
    case StagedCall::kAllreduce:
    case StagedCall::kReduce:
      read = extents(call.from, 1, call.bytes, nullptr);
      if (call.kind == StagedCall::kAllreduce || is_root) {
        // Each member combines the same share of all buffers: in place, or into others.
        read.emplace_back(call.to[0], call.bytes);
        if (overlaps_in_part(read[0], read[1])) {
          return {};
        }
      }
      break;
  }
  if (overwrites(read, written, own, call.kind == StagedCall::kAllgather ? me : -1)) {
    return {};
  }
  std::vector<SymmetricPlace> places;
  for (const Extent& one : read) {
    const auto place = memories.find(one.begin, one.size);
    if (!place) {
      return {};
    }
    places.push_back(*place);
  }
  return places;
}

void move_directly(const StagedCall& call, const DirectBuffers& buffers, const TypedReduction& reduction, int me) {
  const auto members = static_cast<int>(buffers.from.size());
  const auto from = [&buffers](int member) { return buffers.from[static_cast<std::size_t>(member)]; };
  switch (call.kind) {
    case StagedCall::kBarrier:
      return;
    case StagedCall::kBroadcast:
      if (me != call.root) {
        move_bytes(call.to[0], from(call.root), call.bytes);
      }
      return;
    case StagedCall::kScatter:
      move_bytes(call.to[0], from(call.root), call.bytes);
      return;
    case StagedCall::kGather:
      if (me != call.root) {
        return;
      }
      [[fallthrough]];
    case StagedCall::kAllgather:
    case StagedCall::kAlltoall:
      for (int distance = 0; distance < members; ++distance) {
        const int member = (me + distance) % members;  // its own first, and not all the same one at once
        move_bytes(call.to[member], from(member),
                   call.kind == StagedCall::kAlltoall ? call.to_bytes[member] : call.bytes);
      }
      return;
    case StagedCall::kReduceScatter: {
      auto* const to = static_cast<std::byte*>(call.to[0]);
      combine_directly(buffers.from, {&to, 1}, 0, call.bytes, reduction);
      return;
    }
    case StagedCall::kAllreduce: {
      const Share mine = share_of(me, members, call.bytes);
      combine_directly(buffers.from, buffers.to, mine.begin, mine.size, reduction);
      return;
    }
    case StagedCall::kReduce: {
      const Share mine = share_of(me, members, call.bytes);
      std::byte* const to = buffers.to[static_cast<std::size_t>(call.root)];
      combine_directly(buffers.from, {&to, 1}, mine.begin, mine.size, reduction);
      return;
    }
  }
}

}  // namespace shmem
