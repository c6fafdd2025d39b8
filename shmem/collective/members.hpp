// SPDX-License-Identifier: Apache-2.0
// Who takes part in a collective call, and how they meet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <vector>

#include "shmem/collective/carrier.hpp"
#include "shmem/collective/tuning.hpp"
#include "shmem/team/sync_view.hpp"

namespace shmem {

class Span;

/// The PEs of a team or of an active set, seen from one of them, for the time of one call.
///
/// A collective meets at its beginning, when everybody's buffers may be read; then each member fetches what it needs
/// from the others' memory; then it meets again, when nobody reads them any more. Nothing is sent. Small data of teams
/// are carried instead.
struct Members {
  const Job& job;
  TeamMap map;  // by numbers of the world
  int me;
  /// Everybody has come. What was stored before is visible.
  std::function<Result<void>()> meet;
  /// The same, and what each gives is told to all, by member.
  std::function<Result<std::vector<std::uint64_t>>(std::uint64_t mine)> tell;
  // For SHMEM_DEBUG: which team it is, or by which words the PEs of an active set meet.
  int slot = -1;
  const long* psync = nullptr;
  std::optional<TeamMap> here = {};          // those on this node; nothing: unknown
  Carrier* carrier = nullptr;                // none where data cannot be carried
  const CollectiveChoice* choice = nullptr;  // the same on all members; none: direct
  // Of a team on several nodes, with the carrier of its members on this one: collective/on_nodes.hpp.
  Span* span = nullptr;
  Carrier* node_carrier = nullptr;

  [[nodiscard]] int size() const { return map.size; }
  /// `bytes` as CollectiveLimits count them.
  [[nodiscard]] bool carries(Collective collective, std::size_t bytes) const {
    return carrier != nullptr && bytes <= limits(collective).carried;
  }
  [[nodiscard]] bool splits(Collective collective, std::size_t bytes) const {
    return bytes >= limits(collective).split;
  }
  [[nodiscard]] bool is_far(int member) const { return job.nodes.number(map.pe(member)) < 0; }
  /// `mine`, which has been found to be symmetric, as a member has it. REQUIRES: not is_far(member).
  [[nodiscard]] std::byte* at(const void* mine, int member) const {
    return job.translate(mine, job.nodes.number(map.pe(member)));
  }
  /// `size` bytes from `offset` on of what a member has as `mine`, to be read: where they are, or copied to `room`.
  Result<const std::byte*> read(const void* mine, std::size_t offset, std::size_t size, int member,
                                std::byte* room) const {
    if (!is_far(member)) return at(mine, member) + offset;
    auto ok = fetch_far(room, mine, offset, size, member);
    return ok ? Result<const std::byte*>(room) : tl::make_unexpected(ok.error());
  }
  /// The same, copied to `to` in any case; a member's own part may be in place.
  Result<void> fetch(std::byte* to, const void* mine, std::size_t offset, std::size_t size, int member) const {
    if (size == 0) return {};
    if (is_far(member)) return fetch_far(to, mine, offset, size, member);
    std::memmove(to, at(mine, member) + offset, size);  // through the cache: it is for this PE to use
    return {};
  }

 private:
  Result<void> fetch_far(std::byte* to, const void* mine, std::size_t offset, std::size_t size, int member) const {
    const auto from = job.locate_far(static_cast<const std::byte*>(mine) + offset, size, map.pe(member));
    if (from) return job.network->get(to, *from, size);
    return fail(std::errc::bad_address, "shmem: PE " + std::to_string(map.pe(member)) + " has no such memory");
  }
  [[nodiscard]] CollectiveLimits limits(Collective collective) const {
    return choice != nullptr ? (*choice)[static_cast<std::size_t>(collective)] : CollectiveLimits{};
  }
};

/// Of so many bytes, what the `i`th of `shares` does for all: whole cache lines, so that no line is written by two.
struct Share {
  std::size_t begin, size;
};
inline Share share_of(int i, int shares, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  const std::size_t lines = (bytes + kLine - 1) / kLine;
  const auto edge = [&](int which) {
    return std::min(bytes, lines * static_cast<std::size_t>(which) / static_cast<std::size_t>(shares) * kLine);
  };
  return {edge(i), edge(i + 1) - edge(i)};
}

/// All members give, and `use(member, given)` is called for what each has given, in the order of their numbers.
/// REQUIRES: there is a carrier.
template <typename Use>
Result<void> exchange(const Members& members, const void* data, std::size_t size, Use use) {
  Carrier& carrier = *members.carrier;
  if (auto ok = carrier.begin(); !ok) {
    return ok;
  }
  if (auto ok = carrier.give(data, size); !ok) {
    return ok;
  }
  for (int member = 0; member < members.size(); ++member) {
    const auto given = carrier.take(member);
    if (!given) {
      return tl::make_unexpected(given.error());
    }
    use(member, *given);
  }
  carrier.end(true);
  return {};
}

}  // namespace shmem
