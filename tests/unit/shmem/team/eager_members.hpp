// SPDX-License-Identifier: Apache-2.0
// What the tests of eager collectives have in common.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <thread>

#include "shmem/collective/members.hpp"
#include "shmem/layout/job.hpp"
#include "shmem/team/team.hpp"

namespace shmem_test {

inline void dawdle(std::minstd_rand& random) {
  if (random() % 16 == 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
  }
}

/// The members of a team whose calls send up to `limit` bytes eagerly.
struct EagerMembers {
  EagerMembers(shmem::Job& job, shmem::Team& team, std::size_t limit)
      : members{job, team.map(), team.me(), nullptr, 0} {
    choice.fill({.eager = limit, .scatter_allgather = 2049});
    members.eager = &team.eager();
    members.choice = &choice;
  }
  EagerMembers(const EagerMembers&) = delete;
  EagerMembers& operator=(const EagerMembers&) = delete;

  shmem::CollectiveChoice choice{};
  shmem::Members members;
};

/// Bytes of a gift that differ by giver, call and place.
inline std::byte byte_of(int giver, std::uint64_t call, std::size_t i) {
  return static_cast<std::byte>(static_cast<std::size_t>(giver) * 31 + call * 7 + i * 3);
}

/// A range of members. Two ranges that are not consecutive combine to {-1, -1}.
struct Range {
  std::int64_t first, last;
};
inline void join_ranges(void* to, const void* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    auto& left = static_cast<Range*>(to)[i];
    const auto& right = static_cast<const Range*>(from)[i];
    left = left.first >= 0 && left.last + 1 == right.first ? Range{left.first, right.last} : Range{-1, -1};
  }
}

}  // namespace shmem_test
