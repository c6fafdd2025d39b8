// SPDX-License-Identifier: Apache-2.0
#include "shmem/collective/node_phases.hpp"

#include <cstring>
#include <string>

#include "shmem/team/peers.hpp"

namespace shmem {

std::uint64_t NodePhases::number_of(const Carrier::Given& given) {
  std::uint64_t number = 0;
  std::memcpy(&number, given.data, sizeof number);
  return number;
}

Result<std::uint64_t> NodePhases::release(const Result<void>& done, std::uint64_t number) {
  if (size_ > 1) {
    if (auto ok = carrier_.begin(); !ok) return tl::make_unexpected(done ? ok.error() : done.error());
    if (leads()) {
      // Nothing with it: it failed.
      if (auto ok = carrier_.give(&number, done ? sizeof number : 0); !ok) {
        return tl::make_unexpected(done ? ok.error() : done.error());
      }
    } else {
      const auto given = carrier_.take(0);
      if (!given) return tl::make_unexpected(given.error());
      if (given->size == 0) {
        carrier_.end(false);
        const int first = span_.firsts()[static_cast<std::size_t>(span_.my_node())];
        return fail(std::errc::host_unreachable, "shmem: PE " + std::to_string(job_.world_me()) + ": " +
                                                     describe_pe(job_, job_.nodes.number(first)) +
                                                     ", which speaks for this node, could not meet the other nodes; " +
                                                     "it says why");
      }
      number = number_of(*given);
    }
    carrier_.end(false);
  }
  if (!done) return tl::make_unexpected(done.error());
  return number;
}

Result<void> NodePhases::meet(const Result<void>& mine) {
  int failed = -1;
  const auto look = [&](int member, std::uint64_t well) {
    if (well == 0 && failed < 0) failed = member;
  };
  if (auto ok = gather(mine ? 1 : 0, look); !ok) return mine ? ok : mine;
  Result<void> all = mine;
  if (all && failed >= 0) {
    all = fail(std::errc::host_unreachable,
               "shmem: PE " + std::to_string(job_.world_me()) + ": member " + std::to_string(failed) +
                   " of the team on this node could not meet the other nodes; it says why");
  }
  const auto released = release(all);
  if (!mine || released) return mine;
  return tl::make_unexpected(released.error());
}

}  // namespace shmem
