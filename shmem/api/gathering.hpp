// SPDX-License-Identifier: Apache-2.0
// Common to all collective calls: their members, and checks of their buffers.
#pragma once

#include <variant>

#include "shmem/api/check.hpp"
#include "shmem/api/kernel_core.hpp"
#include "shmem/barrier/active_set.hpp"
#include "shmem/collective/members.hpp"
#include "shmem/net/process_group.hpp"

namespace shmem::api {

/// Bytes of `count` blocks of `elements` elements of `size` bytes; ends the job if that overflows.
[[noreturn]] void refuse_extent(const char* call, std::size_t count, std::size_t elements);
inline std::size_t extent_of(const char* call, std::size_t count, std::size_t elements, std::size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, elements, &bytes) || __builtin_mul_overflow(bytes, size, &bytes)) [[unlikely]] {
    refuse_extent(call, count, elements);
  }
  return bytes;
}
/// Ends the job unless all members have the buffer; an empty buffer may be anywhere.
void check_any_buffer(const Members& members, const char* call, const void* address, std::size_t bytes);
inline void check_buffer(const Members& members, const char* call, const void* address, std::size_t bytes) {
  const Reach& reach = Runtime::reach();
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - reach.mine;
  if (offset >= reach.unchecked_heap || bytes > reach.unchecked_heap - offset) {
    check_any_buffer(members, call, address, bytes);
  }
}

/// The members of a team synchronise by it.
class TeamBarrier final : public MemberBarrier {
 public:
  explicit TeamBarrier(Team& team) : team_(team) {}
  Result<void> sync() override { return team_.sync(); }
  Result<std::vector<std::uint64_t>> allgather(std::uint64_t mine) override;

 private:
  Team& team_;
};
inline Members members_of(Team& team, const Runtime& runtime, TeamBarrier& barrier) {
  Members members{runtime.job(), team.map(), team.me(), &barrier, team.slot()};
  members.here = team.map_here();
  members.choice = &team.collectives();
  // While a sync of the team is open, the call fails in its first sync, which says why.
  if (!team.is_ready()) [[unlikely]] {
    return members;
  }
  members.spanning = team.spanning();
  members.eager = members.spanning == nullptr ? &team.eager() : nullptr;
  return members;
}
int refuse_team(const char* call, shmem_team_t team);

/// Runs a collective of a team. `body(members)` returns a Result<void>. Returns what the routine returns: 0, or
/// non-zero with a message.
template <typename Body>
int on_team(const char* call, shmem_team_t handle, Body body) {
  Runtime& runtime = running(call);
  Team* team = find_team(runtime, handle);
  if (team == nullptr) {
    return refuse_team(call, handle);
  }
  TeamBarrier barrier(*team);
  const Result<void> ok = body(members_of(*team, runtime, barrier));
  if (!ok) [[unlikely]] {
    team->note_failed_call();
    return report_loudly(ok.error());
  }
  return 0;
}

/// A sync of the world, or of all cores of all PEs. Ends the job on failure.
void sync_world(const char* call);

/// How a call from before OpenSHMEM 1.5 names its PEs.
struct ActiveSet {
  int start, log_stride, size;
  long* psync;
};
/// The team that makes the calls of the set (team/set_teams.hpp), as most do; nullptr: none, or not yet.
inline Team* team_of(Runtime& runtime, const ActiveSet& set) {
  if (!runtime.sets().is_enabled() || current_core() != nullptr) [[unlikely]] {
    return nullptr;
  }
  const SetTeams::Entry* known = runtime.sets().find({set.start, set.log_stride, set.size});
  return known != nullptr ? known->team.get() : nullptr;
}

/// The PEs of an active set that are all on this node synchronise by words in pSync.
class WordBarrier final : public MemberBarrier {
 public:
  WordBarrier(const Job& job, const ActiveSetName& name, const TeamMap& here, long* psync)
      : job_(job), name_(name), here_(here), psync_(psync) {}
  Result<void> sync() override;
  Result<std::vector<std::uint64_t>> allgather(std::uint64_t mine) override;

 private:
  const Job& job_;
  ActiveSetName name_;
  TeamMap here_;
  long* psync_;
};

/// Those on several nodes by messages.
class GroupBarrier final : public MemberBarrier {
 public:
  explicit GroupBarrier(ProcessGroup& group) : group_(group) {}
  Result<void> sync() override { return group_.barrier(); }
  Result<std::vector<std::uint64_t>> allgather(std::uint64_t mine) override { return group_.allgather(mine); }

 private:
  ProcessGroup& group_;
};

/// The members of a call of an active set that has no team yet: by the team that this call makes, or by pSync. Ends the
/// job if the set is invalid.
class SetCall {
 public:
  SetCall(Runtime& runtime, const char* call, const ActiveSet& set);
  /// nullptr, after a warning: this PE is not in the set.
  [[nodiscard]] const Members* members() const { return members_ ? &*members_ : nullptr; }
  [[noreturn]] static void fail(const Runtime& runtime, const char* call, const Error& error);

 private:
  void use_team(const Runtime& runtime, Team& team);
  void use_words(const Runtime& runtime, const char* call, const ActiveSet& set);

  std::variant<std::monostate, TeamBarrier, WordBarrier, GroupBarrier> barrier_;
  std::optional<Members> members_;
};
/// After a collective that exchanged numbers: resets their word.
void clear_number(const ActiveSet& set);

/// Runs a collective of an active set; false if this PE is not in it. Ends the job on failure.
template <typename Body>
bool on_active_set(const char* call, const ActiveSet& set, Body body) {
  Runtime& runtime = running(call);
  if (Team* team = team_of(runtime, set); team != nullptr) [[likely]] {
    TeamBarrier barrier(*team);
    const Result<void> ok = body(members_of(*team, runtime, barrier));
    if (!ok) [[unlikely]] {
      team->note_failed_call();
      SetCall::fail(runtime, call, ok.error());
    }
    return true;
  }
  const SetCall members(runtime, call, set);
  if (members.members() == nullptr) {
    return false;
  }
  const Result<void> ok = body(*members.members());
  if (!ok) {
    SetCall::fail(runtime, call, ok.error());
  }
  return true;
}

}  // namespace shmem::api
