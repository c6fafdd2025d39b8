// SPDX-License-Identifier: Apache-2.0
#include "shmem/runtime/survival.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "shmem/config/failure.hpp"
#include "shmem/layout/peers.hpp"
#include "shmem/team/admission.hpp"

namespace shmem {
namespace {

/// While it lives, the job's record has no steps: a process that takes the place of a PE does not make them.
class Unrecorded {
 public:
  explicit Unrecorded(Bootstrap& bootstrap) : bootstrap_(bootstrap) { bootstrap_.set_unrecorded(true); }
  ~Unrecorded() { bootstrap_.set_unrecorded(false); }
  Unrecorded(const Unrecorded&) = delete;
  Unrecorded& operator=(const Unrecorded&) = delete;

 private:
  Bootstrap& bootstrap_;
};

}  // namespace

Result<NodeMemory> Survival::open_memory(Bootstrap& bootstrap, const Options& options, std::size_t globals_size) {
  if (auto files = bootstrap.take_over()) {
    return NodeMemory::take_over(bootstrap, *std::move(files), options.symmetric_size, globals_size, options.placement);
  }
  const Unrecorded steps(bootstrap);
  return NodeMemory::create(bootstrap, options.symmetric_size, globals_size, options.placement,
                            options.bootstrap_timeout);
}

void Survival::announce() {
  if (replaces()) {
    heap_.lack_blocks();
    Admission(job_).announce();
  }
}

Result<void> Survival::settle() {
  if (job_.first_without_survive >= 0) {
    cannot_ = {std::errc::operation_not_permitted,
               fmt::format("PE {} has not called shmemx_set_survive before it started the library",
                           job_.first_without_survive)};
  } else if (auto ok = job_.bootstrap->survive(); !ok) {
    cannot_ = ok.error();
  }
  // Without its record, no process finds the memory by this PE, but by others.
  const NodeFds& files = job_.memory.files();
  if (cannot_ || !job_.bootstrap->keep_for_replacement(files.heaps.get(), files.areas.get())) {
    job_.memory.drop_files();
  }
  if (replaces() && cannot_) {
    return fail(cannot_->code, fmt::format("shmem: PE {} cannot take the place of the process that has died: {}",
                                           job_.world_me(), cannot_->text));
  }
  return {};
}

void Survival::give_up_start(const std::string& reason) const {
  if (replaces()) {
    return;
  }
  if (errors_return()) {
    withdraw(job_);
    job_.bootstrap->give_up_start(reason);
  } else {
    job_.bootstrap->abort(EXIT_FAILURE, reason);
  }
}

Result<int> Survival::grow(Team& team, int processes) {
  const auto refuse = [&](std::errc code, const std::string& why) {
    return fail(code, fmt::format("shmem: PE {}: shmemx_team_grow: {}", job_.world_me(), why));
  };
  if (cannot_) {
    return refuse(cannot_->code, cannot_->text);
  }
  if (job_.on_several_nodes()) {
    return refuse(std::errc::not_supported, "the PEs are on several nodes, and only jobs on one node admit processes");
  }
  if (job_.options.debug) {
    return refuse(std::errc::not_supported, "SHMEM_DEBUG is set, whose checks are for the processes of the start");
  }
  if (&team != &teams_.home()) {
    return refuse(std::errc::invalid_argument,
                  fmt::format("team {} is not what is left of SHMEM_TEAM_WORLD, which is team {}", team.slot(),
                              teams_.home().slot()));
  }
  auto slot = is_new() ? teams_.join() : teams_.grow(team, processes);
  if (slot) {
    static_cast<void>(heap_.regroup());  // as in shrink()
  }
  return slot;
}

Result<int> Survival::shrink(Team& team) {
  if (is_new()) {
    return fail(std::errc::operation_not_permitted,
                fmt::format("shmem: PE {}: shmemx_team_shrink: this process has taken the place of one that has died: "
                            "call shmemx_team_grow first",
                            job_.world_me()));
  }
  if (cannot_) {
    return fail(cannot_->code, fmt::format("shmem: PE {}: shmemx_team_shrink: {}", job_.world_me(), cannot_->text));
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
