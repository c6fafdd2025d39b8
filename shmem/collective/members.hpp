// SPDX-License-Identifier: Apache-2.0
// The PEs of a collective call, and how they synchronise.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shmem/collective/shares.hpp"
#include "shmem/config/tuning.hpp"
#include "shmem/layout/sync_view.hpp"
#include "shmem/net/network.hpp"
#include "shmem/team/eager.hpp"

namespace shmem {

class SpanningTeam;

/// How the members of a collective call synchronise.
class MemberBarrier {
 public:
  MemberBarrier() = default;
  MemberBarrier(const MemberBarrier&) = delete;
  MemberBarrier& operator=(const MemberBarrier&) = delete;
  /// Returns when all members have called it. Their earlier stores are visible.
  virtual Result<void> sync() = 0;
  /// The same, and returns each member's number, by member.
  virtual Result<std::vector<std::uint64_t>> allgather(std::uint64_t mine) = 0;

 protected:
  ~MemberBarrier() = default;
};

/// The PEs of a team or an active set, seen from one of them, for the duration of one call.
///
/// A collective synchronises at its beginning, after which all buffers may be read; each member fetches what it needs
/// from the others' memory; a second sync ends the reading. Nothing is sent. Small data of teams travels with the words
/// of the synchronisation instead (EagerChannel).
struct Members {
  const Job& job;
  TeamMap map;  // by numbers of the world
  int me = 0;
  MemberBarrier* barrier = nullptr;
  // For SHMEM_DEBUG: the team, or the words by which the PEs of an active set synchronise.
  int slot = -1;
  const long* psync = nullptr;
  std::optional<TeamMap> here = {};          // those on this node; nothing: unknown
  EagerChannel* eager = nullptr;             // none if data cannot be sent eagerly
  const CollectiveChoice* choice = nullptr;  // the same on all members; none: direct
  SpanningTeam* spanning = nullptr;          // a team on several nodes: collective/on_nodes.hpp

  [[nodiscard]] Result<void> sync() const { return barrier->sync(); }
  [[nodiscard]] Result<std::vector<std::uint64_t>> allgather(std::uint64_t mine) const {
    return barrier->allgather(mine);
  }
  [[nodiscard]] int size() const { return map.size; }
  /// `bytes` as CollectiveLimits count them.
  [[nodiscard]] bool is_eager(Collective collective, std::size_t bytes) const {
    return eager != nullptr && bytes <= limits(collective).eager;
  }
  /// There is nothing to move or combine, and no network or failure that the members would have to hear of: the call
  /// needs no meeting. REQUIRES: `bytes` is the same on all members.
  [[nodiscard]] bool has_nothing_to_do(std::size_t bytes) const {
    return bytes == 0 && (eager != nullptr || psync != nullptr);
  }
  [[nodiscard]] bool splits(Collective collective, std::size_t bytes) const {
    return bytes >= limits(collective).scatter_allgather;
  }
  [[nodiscard]] bool is_remote(int member) const { return job.nodes.number(map.pe(member)) < 0; }
  /// The address of `mine` in a member, once it has been found to be symmetric. REQUIRES: not is_remote(member).
  [[nodiscard]] std::byte* at(const void* mine, int member) const {
    return job.translate(mine, job.nodes.number(map.pe(member)));
  }
  /// For reading: `size` bytes from `offset` on of a member's `mine`, in place or copied to `room`.
  Result<const std::byte*> read(const void* mine, std::size_t offset, std::size_t size, int member,
                                std::byte* room) const {
    if (size == 0) {
      return room;  // `mine` need not be an address
    }
    if (!is_remote(member)) {
      return at(mine, member) + offset;
    }
    auto ok = fetch_remote(room, mine, offset, size, member);
    return ok ? Result<const std::byte*>(room) : ok.error();
  }
  /// The same, always copied to `to`; a member's own part may be in place.
  Result<void> fetch(std::byte* to, const void* mine, std::size_t offset, std::size_t size, int member) const {
    if (size == 0) {
      return {};
    }
    if (is_remote(member)) {
      return fetch_remote(to, mine, offset, size, member);
    }
    move_cached(to, at(mine, member) + offset, size);  // through the cache: this PE is about to use it
    return {};
  }

 private:
  Result<void> fetch_remote(std::byte* to, const void* mine, std::size_t offset, std::size_t size, int member) const {
    const auto from = job.locate_remote(static_cast<const std::byte*>(mine) + offset, size, map.pe(member));
    if (from) {
      return job.network->get(to, *from, size);
    }
    return fail(std::errc::bad_address, "shmem: PE " + std::to_string(map.pe(member)) + " has no such memory");
  }
  [[nodiscard]] CollectiveLimits limits(Collective collective) const {
    return choice != nullptr ? (*choice)[static_cast<std::size_t>(collective)] : CollectiveLimits{};
  }
};

/// All members give, and use(member, given) is called for each gift of members 0 to `last`, in this order. REQUIRES:
/// eager. `write` is as in EagerChannel::give.
template <EagerChannel::Givers kGivers = EagerChannel::Givers::kAll, typename Write, typename Use>
Result<void> exchange(const Members& members, std::size_t size, Write write, int last, Use use) {
  EagerChannel& eager = *members.eager;
  if (!eager.begin() || !eager.give<kGivers>(size, write)) [[unlikely]] {
    return eager.error();
  }
  for (int member = 0; member <= last; ++member) {
    const EagerChannel::Given given = eager.take<kGivers>(member);
    if (!given) [[unlikely]] {
      return eager.error();
    }
    use(member, given);
  }
  eager.end(last == members.size() - 1 ? EagerChannel::Begun::kThis : EagerChannel::Begun::kUnknown);
  return {};
}
/// The same with `data`, for the gifts of all members.
template <typename Use>
Result<void> exchange(const Members& members, const void* data, std::size_t size, Use use) {
  return exchange(
      members, size, [data, size](std::byte* to) { copy_small(to, data, size); }, members.size() - 1, use);
}

}  // namespace shmem
