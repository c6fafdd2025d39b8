// SPDX-License-Identifier: Apache-2.0
// The PEs of a call that is collective over the job and succeeds on all of them or on none.
#pragma once

#include <fmt/format.h>

#include <optional>

#include "shmem/bootstrap/agreement.hpp"
#include "shmem/runtime/team_bootstrap.hpp"

namespace shmem {

/// The PEs of the team that stands for the job, for one collective call. Numbers of members are their places in it.
struct JobMembers {
  const Job& job;
  Team& team;
  TeamBootstrap bootstrap{job, team};

  [[nodiscard]] int world(int member) const { return team.map().pe(member); }
  /// On this node; below 0: on another one.
  [[nodiscard]] int number(int member) const { return job.nodes.number(world(member)); }

  /// Collective: success only if all PEs succeeded; else the Error of the first PE that failed.
  Result<void> agree(const Result<void>& mine) {
    const auto failure = first_of(bootstrap, mine ? std::nullopt : std::optional(report_of(mine.error())));
    if (!failure) {
      return mine ? failure.error() : mine.error();
    }
    return *failure ? failed((*failure)->pe, (*failure)->what) : Result<void>();
  }
  [[nodiscard]] Error failed(int member, const Report& report) const {
    return fail(std::errc{report.code}, fmt::format("PE {}: {}", world(member), report.text.data()));
  }
};

}  // namespace shmem
