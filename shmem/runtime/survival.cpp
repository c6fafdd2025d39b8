// SPDX-License-Identifier: Apache-2.0
// Jobs that go on when PEs die: teams of those that are left, and processes that take the places of others.
#include <fmt/format.h>

#include "shmem/runtime/runtime.hpp"

namespace shmem {

void Runtime::settle_survival() {
  if (job_.first_relying >= 0) {
    cannot_shrink_ = {
        std::errc::operation_not_permitted,
        fmt::format("PE {} has not called shmemx_set_survive before it started the library", job_.first_relying)};
  } else if (auto ok = job_.bootstrap->survive(); !ok) {
    cannot_shrink_ = ok.error();
  }
  // Without its record, no process finds the memory by this PE, but by others.
  const NodeFds& files = job_.memory.files();
  if (cannot_shrink_ || !job_.bootstrap->keep_for_replacement(files.heaps.get(), files.areas.get())) {
    job_.memory.drop_files();
  }
}

Result<int> Runtime::grow(Team& team, int processes) {
  const auto refuse = [&](std::errc code, const std::string& why) {
    return fail(code, fmt::format("shmem: PE {}: shmemx_team_grow: {}", job_.world_me(), why));
  };
  if (cannot_shrink_) {
    return refuse(cannot_shrink_->code, cannot_shrink_->text);
  }
  if (job_.on_several_nodes()) {
    return refuse(std::errc::not_supported, "the PEs are on several nodes, and only jobs on one node admit processes");
  }
  if (checker_) {
    return refuse(std::errc::not_supported, "SHMEM_DEBUG is set, whose checks are for the processes of the start");
  }
  if (&team != &teams_.home()) {
    return refuse(std::errc::invalid_argument,
                  fmt::format("team {} is not what is left of SHMEM_TEAM_WORLD, which is team {}", team.slot(),
                              teams_.home().slot()));
  }
  auto slot = job_.replaces && teams_.home_is_world() ? teams_.join() : teams_.grow(team, processes);
  if (slot) {
    static_cast<void>(heap_.regroup());  // as in shrink()
  }
  return slot;
}

Result<int> Runtime::shrink(Team& team) {
  if (job_.replaces && teams_.home_is_world()) {
    return fail(std::errc::operation_not_permitted,
                fmt::format("shmem: PE {}: shmemx_team_shrink: this process has taken the place of one that has died: "
                            "call shmemx_team_grow first",
                            job_.world_me()));
  }
  if (cannot_shrink_) {
    return fail(cannot_shrink_->code,
                fmt::format("shmem: PE {}: shmemx_team_shrink: {}", job_.world_me(), cannot_shrink_->text));
  }
  const int home = teams_.home().slot();
  auto slot = teams_.shrink(team);
  if (slot && teams_.home().slot() != home) {
    // If it fails, because another PE has died, so do all calls on the heap until the new team is shrunk.
    static_cast<void>(heap_.regroup());
  }
  return slot;
}

}  // namespace shmem
