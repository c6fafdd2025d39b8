// SPDX-License-Identifier: Apache-2.0
#include "shmem/api/gathering.hpp"

#include "shmem/barrier/active_set.hpp"
#include "shmem/barrier/wait_monitor.hpp"
#include "shmem/team/spanning_team.hpp"

namespace shmem::api {
namespace {

/// Where a member of an active set leaves a number for the others: after the words of its barriers.
constexpr int kNumberWord = kActiveSetProgress + 1;
static_assert(SHMEM_COLLECT_SYNC_SIZE > kNumberWord && SHMEM_BARRIER_SYNC_SIZE > kActiveSetProgress);

Result<std::vector<std::uint64_t>> allgather_number(Team& team, std::uint64_t number) {
  if (SpanningTeam* spanning = team.spanning(); spanning != nullptr) {
    auto ok = team.ready();
    return ok ? spanning->everybody().allgather(number) : ok.error();
  }
  const SyncView& view = team.view();
  // Relaxed: a sync separates the store from the loads, and another one precedes the next store.
  view.mine().number.store(number, std::memory_order_relaxed);
  if (auto ok = team.sync(); !ok) {
    return ok.error();
  }
  std::vector<std::uint64_t> all;
  all.reserve(static_cast<std::size_t>(view.size()));
  for (int i = 0; i < view.size(); ++i) {
    all.push_back(view.member(i).number.load(std::memory_order_relaxed));
  }
  return all;
}

Result<std::vector<std::uint64_t>> allgather_number(const Job& job, const TeamMap& map, long* psync,
                                                    std::uint64_t number, const std::function<Result<void>()>& sync) {
  // Relaxed: as above.
  std::atomic_ref(psync[kNumberWord]).store(static_cast<long>(number), std::memory_order_relaxed);
  if (auto ok = sync(); !ok) {
    return ok.error();
  }
  std::vector<std::uint64_t> all;
  all.reserve(static_cast<std::size_t>(map.size));
  for (int i = 0; i < map.size; ++i) {
    auto* word = reinterpret_cast<long*>(job.translate(psync + kNumberWord, map.pe(i)));
    all.push_back(static_cast<std::uint64_t>(std::atomic_ref(*word).load(std::memory_order_relaxed)));
  }
  return all;
}

/// The set as PEs of this node; nothing if some are on another node.
std::optional<TeamMap> map_here(const Job& job, const TeamMap& set) {
  for (int i = 0; i < set.size; ++i) {
    if (job.nodes.number(set.pe(i)) < 0) {
      return std::nullopt;
    }
  }
  const auto here = members_here(job.nodes, set);
  return here ? std::optional(*here) : std::nullopt;
}

/// Ends the job if there are no such PEs.
TeamMap map_of(const Runtime& runtime, const char* call, const ActiveSet& set) {
  const std::int64_t last = set.start + ((std::int64_t{set.size} - 1) << (set.log_stride & 31));
  if (set.start < 0 || set.log_stride < 0 || set.log_stride > 30 || set.size < 1 || last >= runtime.n_pes()) {
    end_job(runtime, call, "start {}, log stride {}, size {} name no PEs of this job of {}", set.start, set.log_stride,
            set.size, runtime.n_pes());
  }
  return {set.start, 1 << set.log_stride, set.size};
}

}  // namespace

std::size_t extent_of(const char* call, std::size_t count, std::size_t elements, std::size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, elements, &bytes) || __builtin_mul_overflow(bytes, size, &bytes)) {
    end_job(running(call), call, "{} times {} elements cannot be addressed", count, elements);
  }
  return bytes;
}

void check_buffer(const Members& members, const char* call, const void* address, std::size_t bytes) {
  if (bytes == 0) {
    return;
  }
  const Runtime& runtime = running(call);
  remote(runtime, call, address, bytes, runtime.my_pe());
  // All PEs have the heap, but a global variable may exist on some only, if not all run the same program.
  if (members.job.is_in_heap(address) || members.job.globals.same_on_all()) {
    return;
  }
  for (int i = 0; i < members.size(); ++i) {
    remote(runtime, call, address, bytes, members.map.pe(i));
  }
}

Members members_of(Team& team, const Runtime& runtime) {
  Members members{runtime.job(),
                  team.map(),
                  team.me(),
                  [&team] { return team.sync(); },
                  [&team](std::uint64_t number) { return allgather_number(team, number); },
                  team.slot()};
  members.here = team.map_here();
  members.choice = &team.collectives();
  // While a sync of the team is open, the call fails in its first sync, which says why.
  if (!team.ready()) {
    return members;
  }
  members.spanning = team.spanning();
  members.eager = members.spanning == nullptr ? &team.eager() : nullptr;
  return members;
}

int refuse_team(const char* call, shmem_team_t team) {
  return report_loudly(invalid(running(call), call, not_a_team(team)));
}

void clear_number(const ActiveSet& set) {
  // Relaxed: all members have synchronised since they read it.
  std::atomic_ref(set.psync[kNumberWord]).store(SHMEM_SYNC_VALUE, std::memory_order_relaxed);
}

std::optional<Members> members_of(const Runtime& runtime, const char* call, const ActiveSet& set) {
  const TeamMap map = map_of(runtime, call, set);
  if (!map.member(runtime.my_pe())) {
    // Undefined in the specification; other implementations return too.
    tolerate(runtime, call,
             fmt::format("this PE is not in the set (start {}, log stride {}, size {}); nothing is done", set.start,
                         set.log_stride, set.size));
    return std::nullopt;
  }
  const Job& job = runtime.job();
  long* psync = set.psync;
  const int me = map.member(runtime.my_pe()).value_or(0);
  const auto here = map_here(job, map);
  if (!here) {
    Members members{job, map, me, {}, {}};
    check_buffer(members, call, psync, SHMEM_BARRIER_SYNC_SIZE * sizeof(long));
    ProcessGroup& group = runtime.network().group_of(map, psync);
    members.sync = [&group] { return group.barrier(); };
    members.allgather = [&group](std::uint64_t number) { return group.allgather(number); };
    return members;
  }
  Members members{job,
                  map,
                  me,
                  [&runtime, name = ActiveSetName{call, map.start, map.stride}, map = *here, psync]() -> Result<void> {
                    ActiveSetMonitor monitor(runtime.job(), map, psync, name);
                    const std::errc error =
                        active_set_sync(runtime.job(), map, psync, [&monitor] { return monitor(); });
                    return error == std::errc{} ? Result<void>() : fail(error, monitor.explain(error));
                  },
                  {}};
  check_buffer(members, call, psync, SHMEM_BARRIER_SYNC_SIZE * sizeof(long));
  members.allgather = [&job, map = *here, psync, sync = members.sync](std::uint64_t number) {
    return allgather_number(job, map, psync, number, sync);
  };
  members.here = *here;
  members.psync = psync;
  return members;
}

}  // namespace shmem::api
