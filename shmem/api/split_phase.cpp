// SPDX-License-Identifier: Apache-2.0
// Split-phase barriers, and barriers with a time limit.
#include <algorithm>

#include "shmem/api/check.hpp"
#include "shmem/api/kernel_core.hpp"
#include "shmem/api/remote.hpp"

using shmem::Team;
namespace api = shmem::api;

namespace {

/// The team, or nullptr and the error in `error`.
Team* find(const char* call, shmem_team_t team, int& error) {
  shmem::Runtime& runtime = api::running_on_host(call);
  Team* found = api::find_team(runtime, team);
  if (found == nullptr) {
    error = api::report(api::invalid(runtime, call, api::not_a_team(team)));
  }
  return found;
}

/// As above, for a team with an open barrier.
Team* find_open(const char* call, shmem_team_t team, int& error) {
  Team* found = find(call, team, error);
  if (found == nullptr || found->is_open()) {
    return found;
  }
  error = api::report(
      api::invalid(*shmem::Runtime::current(), call,
                   fmt::format("team {} has no open barrier (shmemx_barrier_arrive opens one)", found->slot())));
  return nullptr;
}

shmem::Result<void> arrive(const char* call, Team& team) {
  const shmem::Runtime& runtime = api::running(call);
  if (runtime.checker() != nullptr && !team.is_open()) [[unlikely]] {
    api::announce_team_call(runtime, team, call);
  }
  return team.arrive();
}

int outcome(const shmem::Result<void>& result) {
  return result ? 0 : api::report(result.error());
}

}  // namespace

extern "C" {

int shmemx_barrier_arrive(shmem_team_t team) noexcept try {
  int error = 0;
  Team* found = find("shmemx_barrier_arrive", team, error);
  if (found == nullptr) {
    return error;
  }
  api::quiet();
  return outcome(arrive("shmemx_barrier_arrive", *found));
}
SHMEM_CATCH(int)

int shmemx_barrier_test(shmem_team_t team) noexcept try {
  int error = 0;
  Team* found = find_open("shmemx_barrier_test", team, error);
  if (found == nullptr) {
    return error;
  }
  const auto over = found->test();
  if (!over) {
    return api::report(over.error());
  }
  return *over ? 0 : -EAGAIN;
}
SHMEM_CATCH(int)

int shmemx_barrier_wait(shmem_team_t team) noexcept try {
  int error = 0;
  Team* found = find_open("shmemx_barrier_wait", team, error);
  return found != nullptr ? outcome(found->wait()) : error;
}
SHMEM_CATCH(int)

int shmemx_barrier_timed(shmem_team_t team, uint64_t timeout_ns) noexcept try {
  int error = 0;
  Team* found = find("shmemx_barrier_timed", team, error);
  if (found == nullptr) {
    return error;
  }
  if (!found->is_open()) {
    api::quiet();
    if (auto ok = arrive("shmemx_barrier_timed", *found); !ok) {
      return api::report(ok.error());
    }
  }
  constexpr auto kLongest = static_cast<std::uint64_t>(std::chrono::nanoseconds::max().count());
  return outcome(found->wait(std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(timeout_ns, kLongest)))));
}
SHMEM_CATCH(int)
}
