// SPDX-License-Identifier: Apache-2.0
#include "shmem/api/gathering.hpp"

#include "shmem/barrier/active_set.hpp"
#include "shmem/barrier/timed_watch.hpp"

namespace shmem::api {
namespace {

/// Where a member of an active set tells the others a number: behind the words of the rounds.
constexpr int kToldWord = kActiveSetRounds;
static_assert(SHMEM_COLLECT_SYNC_SIZE > kToldWord && SHMEM_BARRIER_SYNC_SIZE >= kActiveSetRounds);

Result<std::vector<std::uint64_t>> tell(Team& team, std::uint64_t number) {
  if (team.span() != nullptr) {
    auto ok = team.ready();
    return ok ? team.span()->everybody().tell_all(number) : tl::make_unexpected(ok.error());
  }
  const SyncView& view = team.view();
  // Relaxed: a meeting lies between the store and the loads, and another before the next store.
  view.mine().told.store(number, std::memory_order_relaxed);
  if (auto ok = team.sync(); !ok) {
    return tl::make_unexpected(ok.error());
  }
  std::vector<std::uint64_t> all;
  for (int i = 0; i < view.size(); ++i) {
    all.push_back(view.member(i).told.load(std::memory_order_relaxed));
  }
  return all;
}

Result<std::vector<std::uint64_t>> tell(const Job& job, const TeamMap& map, long* psync, std::uint64_t number,
                                        const std::function<Result<void>()>& meet) {
  // Relaxed: a meeting lies between the store and the loads, and another before the next store.
  std::atomic_ref(psync[kToldWord]).store(static_cast<long>(number), std::memory_order_relaxed);
  if (auto ok = meet(); !ok) {
    return tl::make_unexpected(ok.error());
  }
  std::vector<std::uint64_t> all;
  for (int i = 0; i < map.size; ++i) {
    auto* word = reinterpret_cast<long*>(job.translate(psync + kToldWord, map.pe(i)));
    all.push_back(static_cast<std::uint64_t>(std::atomic_ref(*word).load(std::memory_order_relaxed)));
  }
  return all;
}

/// All PEs of the set are on this node, and stand there as `here` says; nothing: some are on another one.
std::optional<TeamMap> map_here(const Job& job, const TeamMap& set) {
  for (int i = 0; i < set.size; ++i) {
    if (job.nodes.number(set.pe(i)) < 0) return std::nullopt;
  }
  const auto here = members_here(job.nodes, set);
  return here ? std::optional(*here) : std::nullopt;
}

}  // namespace

std::size_t extent_of(const char* call, std::size_t count, std::size_t elements, std::size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, elements, &bytes) || __builtin_mul_overflow(bytes, size, &bytes)) {
    end_job(running(call), call,
            std::to_string(count) + " times " + std::to_string(elements) + " elements cannot be addressed");
  }
  return bytes;
}

void check_buffer(const Members& members, const char* call, const void* address, std::size_t bytes) {
  if (bytes == 0) {
    return;
  }
  const Context& context = running(call);
  remote(context, call, address, bytes, context.my_pe());
  // The heap is on all PEs, a global variable perhaps not.
  for (int i = 0; i < members.size() && !members.job.is_in_heap(address); ++i) {
    remote(context, call, address, bytes, members.map.pe(i));
  }
}

Members members_of(Team& team, const Context& context) {
  Members members{context.job(),
                  team.map(),
                  team.me(),
                  [&team] { return team.sync(); },
                  [&team](std::uint64_t number) { return tell(team, number); },
                  team.slot()};
  members.here = team.map_here();
  members.choice = &team.collectives();
  // While a sync of the team is open, the call meets, and hears why it cannot.
  if (!team.ready()) {
    return members;
  }
  members.span = team.span();
  (members.span != nullptr ? members.node_carrier : members.carrier) = &team.carrier();
  return members;
}

int refuse_team(const char* call, shmem_team_t team) {
  return report_loudly({std::errc::invalid_argument, "shmem: PE " + std::to_string(running(call).my_pe()) + ": " +
                                                         call + ": " + std::to_string(team) +
                                                         " is not a team of this PE"});
}

void clear_told(const ActiveSet& set) {
  // Relaxed: all have met since they read it.
  std::atomic_ref(set.psync[kToldWord]).store(SHMEM_SYNC_VALUE, std::memory_order_relaxed);
}

TeamMap checked_map(const Context& context, const char* call, const ActiveSet& set) {
  const std::int64_t last = set.start + ((std::int64_t{set.size} - 1) << (set.log_stride & 31));
  if (set.start < 0 || set.log_stride < 0 || set.log_stride > 30 || set.size < 1 || last >= context.n_pes()) {
    end_job(context, call,
            "start " + std::to_string(set.start) + ", log stride " + std::to_string(set.log_stride) + ", size " +
                std::to_string(set.size) + " name no PEs of this job of " + std::to_string(context.n_pes()));
  }
  const TeamMap map{set.start, 1 << set.log_stride, set.size};
  if (!map.member(context.my_pe())) {
    end_job(context, call, "this PE is not in the set");
  }
  return map;
}

Members members_of(const Context& context, const char* call, const ActiveSet& set) {
  const TeamMap map = checked_map(context, call, set);
  const Job& job = context.job();
  long* psync = set.psync;
  const int me = map.member(context.my_pe()).value_or(0);
  const auto here = map_here(job, map);
  if (!here) {
    Members members{job, map, me, {}, {}};
    check_buffer(members, call, psync, SHMEM_BARRIER_SYNC_SIZE * sizeof(long));
    LeaderGroup& group = context.group_of(map, psync);
    members.meet = [&group] { return group.barrier(); };
    members.tell = [&group](std::uint64_t number) { return group.tell_all(number); };
    return members;
  }
  Members members{job,
                  map,
                  me,
                  [&context, call, map = *here, psync]() -> Result<void> {
                    TimedWatch watch(context.job());
                    const std::errc error = active_set_sync(context.job(), map, psync, [&watch] { return watch(); });
                    if (error != std::errc{}) {
                      return fail(error, "the wait for the " + std::to_string(map.size) + " PEs of the set " +
                                             watch.explain(error));
                    }
                    return {};
                  },
                  {}};
  check_buffer(members, call, psync, SHMEM_BARRIER_SYNC_SIZE * sizeof(long));
  members.tell = [&job, map = *here, psync, meet = members.meet](std::uint64_t number) {
    return tell(job, map, psync, number, meet);
  };
  members.here = *here;
  members.psync = psync;
  return members;
}

}  // namespace shmem::api
