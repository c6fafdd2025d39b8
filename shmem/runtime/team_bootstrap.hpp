// SPDX-License-Identifier: Apache-2.0
// The members of a team as the ranks of a Bootstrap, for steps of a running job that succeed on all of them or on none.
#pragma once

#include <cstddef>

#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/checking/board.hpp"
#include "shmem/team/team.hpp"

namespace shmem {

/// Where a PE puts its bytes for the others of its node: after the board of calls.
constexpr std::size_t kGatherOffset = std::size_t{28} << 20;
constexpr std::size_t kMostGathered = std::size_t{64} << 10;
static_assert(kCallBoardOffset + sizeof(CallBoard) <= kGatherOffset);
static_assert(kGatherOffset + kMostGathered <= kMetadataSize - kNotesSize);

/// For one call. Waits as the team's barriers do, with their limits; an Error of those is one of the team.
class TeamBootstrap final : public Bootstrap {
 public:
  TeamBootstrap(const Job& job, Team& team) : job_(job), team_(team) {}

  [[nodiscard]] int rank() const override { return team_.me(); }
  [[nodiscard]] int size() const override { return team_.size(); }
  /// Up to kMostGathered bytes.
  Result<std::vector<std::byte>> allgather(std::span<const std::byte> mine) override;
  int abort(int status, const std::string& reason) override { return job_.bootstrap->abort(status, reason); }
  [[nodiscard]] std::optional<std::string> aborted() const override { return job_.bootstrap->aborted(); }
  void leave() override {}

 private:
  const Job& job_;
  Team& team_;
};

}  // namespace shmem
