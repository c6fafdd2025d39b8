// SPDX-License-Identifier: Apache-2.0
// Who takes part in a collective call, and how they meet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "shmem/collective/carrier.hpp"
#include "shmem/collective/tuning.hpp"
#include "shmem/team/sync_view.hpp"

namespace shmem {

/// The PEs of a team or of an active set, seen from one of them, for the time of one call.
///
/// A collective meets at its beginning, when everybody's buffers may be read; then each member fetches what it needs
/// from the others' memory; then it meets again, when nobody reads them any more. Nothing is sent. Small data of teams
/// are carried instead.
struct Members {
  const Job& job;
  TeamMap map;
  int me;
  /// Everybody has come. What was stored before is visible.
  std::function<Result<void>()> meet;
  /// Tells the others a number that each has of its own; they read it after the next meeting and before the one after
  /// that.
  std::function<void(std::uint64_t)> tell;
  std::function<std::uint64_t(int member)> told;
  // For SHMEM_DEBUG: which team it is, or by which words the PEs of an active set meet.
  int slot = -1;
  const long* psync = nullptr;
  Carrier* carrier = nullptr;                // none where data cannot be carried
  const CollectiveChoice* choice = nullptr;  // the same on all members; none: direct

  [[nodiscard]] int size() const { return map.size; }
  /// `bytes` as CollectiveLimits count them.
  [[nodiscard]] bool carries(Collective collective, std::size_t bytes) const {
    return carrier != nullptr && bytes <= limits(collective).carried;
  }
  [[nodiscard]] bool splits(Collective collective, std::size_t bytes) const {
    return bytes >= limits(collective).split;
  }
  /// `mine`, which has been found to be symmetric, as a member has it.
  [[nodiscard]] std::byte* at(const void* mine, int member) const { return job.translate(mine, map.pe(member)); }

 private:
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
