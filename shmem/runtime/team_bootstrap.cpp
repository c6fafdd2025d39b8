// SPDX-License-Identifier: Apache-2.0
#include "shmem/runtime/team_bootstrap.hpp"

#include <fmt/format.h>

#include <cstring>

#include "shmem/team/spanning_team.hpp"

namespace shmem {

Result<std::vector<std::byte>> TeamBootstrap::allgather(std::span<const std::byte> mine) {
  if (mine.size() > kMostGathered) {
    return fail(std::errc::message_size, fmt::format("{} bytes are too many for one step", mine.size()));
  }
  const auto members = static_cast<std::size_t>(team_.size());
  std::vector<std::byte> all(mine.size() * members);
  if (SpanningTeam* spanning = team_.spanning(); spanning != nullptr) {
    if (auto ok = team_.ready(); !ok) {
      return ok.error();
    }
    std::memcpy(all.data() + static_cast<std::size_t>(team_.me()) * mine.size(), mine.data(), mine.size());
    const std::vector<std::size_t> sizes(members, mine.size());
    auto ok = spanning->everybody().allgather(sizes, all.data());
    return ok ? Result<std::vector<std::byte>>(std::move(all)) : ok.error();
  }
  std::memcpy(job_.memory.metadata(job_.me) + kGatherOffset, mine.data(), mine.size());
  if (auto ok = team_.sync(); !ok) {
    return ok.error();
  }
  const TeamMap& here = team_.map_here();
  for (int member = 0; member < here.size; ++member) {
    std::memcpy(all.data() + static_cast<std::size_t>(member) * mine.size(),
                job_.memory.metadata(here.pe(member)) + kGatherOffset, mine.size());
  }
  // Until all have read it.
  if (auto ok = team_.sync(); !ok) {
    return ok.error();
  }
  return all;
}

}  // namespace shmem
