// SPDX-License-Identifier: Apache-2.0
#include "shmem/collective/direct.hpp"

#include <span>

namespace shmem {
namespace {

/// Up to this many bytes a copy costs less than the sync after a direct call. Calls whose members combine for each
/// other have such a sync anyway.
constexpr std::size_t kMostStaged = std::size_t{64} << 10;

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

}  // namespace

std::vector<SymmetricPlace> places_to_show(const StagedCall& call, const SymmetricMemories& memories, int me,
                                           int members) {
  if (memories.empty()) {
    return {};
  }
  const bool to_each = has_blocks(call.kind);
  const bool shares = shares_sums(call.kind);
  const bool gathers = call.kind == StagedCall::kAllgather;  // all take something from each
  const auto all = static_cast<std::size_t>(members);
  const auto own = static_cast<std::size_t>(me);
  std::vector<Extent> read;  // by other members
  std::size_t total = 0;
  for (std::size_t i = 0; i < (to_each ? all : 1); ++i) {
    total += given_bytes(call, i);
    if (gives(call, me)) {
      read.emplace_back(call.from[i], given_bytes(call, i));
    }
  }
  if (!shares && total <= kMostStaged) {
    return {};
  }
  // By this member meanwhile. The root of a gather reads its own before it writes, and shares are combined in place, or
  // into others.
  std::vector<Extent> written;
  const bool writes_all = gathers || call.kind == StagedCall::kAlltoall;
  for (std::size_t i = 0; i < (writes_all ? all : to_each ? 1 : 0); ++i) {
    written.emplace_back(call.to[i], taken_bytes(call, i));
  }
  if (overwrites(read, written, to_each ? me : -1, gathers ? me : -1) ||
      (gathers && overlaps_in_part(read[0], written[own])) ||
      (call.kind == StagedCall::kReduceScatter && overlaps_in_part(read[own], written[0]))) {
    return {};
  }
  if (shares && takes_sums(call, me)) {
    read.emplace_back(call.to[0], call.bytes);
    if (overlaps_in_part(read[0], read[1])) {
      return {};
    }
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

}  // namespace shmem
