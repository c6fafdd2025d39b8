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

/// Ends the job if there are no such PEs.
TeamMap map_of(const Runtime& runtime, const char* call, const ActiveSet& set) {
  const std::int64_t last = set.start + ((std::int64_t{set.size} - 1) << (set.log_stride & 31));
  if (set.start < 0 || set.log_stride < 0 || set.log_stride > 30 || set.size < 1 || last >= runtime.n_pes()) {
    end_job(runtime, call, "start {}, log stride {}, size {} name no PEs of this job of {}", set.start, set.log_stride,
            set.size, runtime.n_pes());
  }
  return {set.start, 1 << set.log_stride, set.size};
}

/// The first member whose registered memory is private to its process, so that others on its node cannot load it; -1:
/// none. All members come to the same result, because otherwise some would wait for one that has refused the call.
int unreachable_member(const Members& members, const RegisteredMemory::Found& found) {
  const RegisteredMemory& registered = *members.job.registered;
  if (registered.is_mapped(found)) {
    return -1;
  }
  const Nodes& nodes = members.job.nodes;
  const auto node_of = [&](int pe) { return nodes.several() ? nodes.node_of[static_cast<std::size_t>(pe)] : 0; };
  for (int i = 0; i < members.size(); ++i) {
    const int pe = members.map.pe(i);
    for (int other = 0; other < members.size() && registered.is_private(found, pe); ++other) {
      if (other != i && node_of(members.map.pe(other)) == node_of(pe)) {
        return pe;
      }
    }
  }
  return -1;
}

}  // namespace

void refuse_extent(const char* call, std::size_t count, std::size_t elements) {
  end_job(running(call), call, "{} times {} elements cannot be addressed", count, elements);
}

void check_any_buffer(const Members& members, const char* call, const void* address, std::size_t bytes) {
  if (bytes == 0) {
    return;
  }
  const Runtime& runtime = running(call);
  remote(runtime, call, address, bytes, runtime.my_pe());
  if (const auto registered = members.job.registered->find(address)) {
    if (const int pe = unreachable_member(members, *registered); pe >= 0) {
      refuse_address(runtime, call, address, bytes, pe);
    }
    return;
  }
  // All PEs have the heap, but a global variable may exist on some only, if not all run the same program.
  if (members.job.is_in_heap(address) || members.job.globals.same_on_all()) {
    return;
  }
  for (int i = 0; i < members.size(); ++i) {
    remote(runtime, call, address, bytes, members.map.pe(i));
  }
}

Result<std::vector<std::uint64_t>> TeamBarrier::allgather(std::uint64_t mine) {
  return allgather_number(team_, mine);
}

int refuse_team(const char* call, shmem_team_t team) {
  return report_loudly(invalid(running(call), call, not_a_team(team)));
}

void clear_number(const ActiveSet& set) {
  // Relaxed: all members have synchronised since they read it.
  std::atomic_ref(set.psync[kNumberWord]).store(SHMEM_SYNC_VALUE, std::memory_order_relaxed);
}

Result<void> WordBarrier::sync() {
  // Relaxed: only this PE changes this word, which is 0 outside of a barrier. Open MPI's header says -1.
  if (const long first = std::atomic_ref(psync_[kActiveSetProgress]).load(std::memory_order_relaxed); first < 0) {
    return shmem::fail(
        std::errc::invalid_argument,
        fmt::format(
            "its pSync begins with {}, not with SHMEM_SYNC_VALUE, {}: was the program compiled with the shmem.h "
            "of another library?",
            first, SHMEM_SYNC_VALUE));
  }
  ActiveSetMonitor monitor(job_, here_, psync_, name_);
  const std::errc error = active_set_sync(job_, here_, psync_, [&monitor] { return monitor(); });
  return error == std::errc{} ? Result<void>() : shmem::fail(error, monitor.explain(error));
}

Result<std::vector<std::uint64_t>> WordBarrier::allgather(std::uint64_t mine) {
  // Relaxed: as above.
  std::atomic_ref(psync_[kNumberWord]).store(static_cast<long>(mine), std::memory_order_relaxed);
  if (auto ok = sync(); !ok) {
    return ok.error();
  }
  std::vector<std::uint64_t> all;
  all.reserve(static_cast<std::size_t>(here_.size));
  for (int i = 0; i < here_.size; ++i) {
    auto* word = reinterpret_cast<long*>(job_.translate(psync_ + kNumberWord, here_.pe(i)));
    all.push_back(static_cast<std::uint64_t>(std::atomic_ref(*word).load(std::memory_order_relaxed)));
  }
  return all;
}

SetCall::SetCall(Runtime& runtime, const char* call, const ActiveSet& set) {
  const SetName name{set.start, set.log_stride, set.size};
  const bool by_team = runtime.sets().is_enabled() && current_core() == nullptr;
  const bool is_new = by_team && runtime.sets().find(name) == nullptr;
  use_words(runtime, call, set);
  if (is_new && members_ && members_->here && set.size > 1) {
    const auto made = runtime.sets().create(name, {.here = *members_->here, .world = members_->map},
                                            [this] { return members_->sync(); });
    if (!made) {
      fail(runtime, call, made.error());
    }
    if ((*made)->team != nullptr) {
      use_team(runtime, *(*made)->team);
    }
  }
}

void SetCall::fail(const Runtime& runtime, const char* call, const Error& error) {
  // A team's errors name the PE already.
  const std::string own = fmt::format("shmem: PE {}: ", runtime.my_pe());
  end_job(runtime, call, {error.code, error.text.starts_with(own) ? error.text.substr(own.size()) : error.text});
}

void SetCall::use_team(const Runtime& runtime, Team& team) {
  members_.emplace(members_of(team, runtime, barrier_.emplace<TeamBarrier>(team)));
}

void SetCall::use_words(const Runtime& runtime, const char* call, const ActiveSet& set) {
  const TeamMap map = map_of(runtime, call, set);
  if (!map.member(runtime.my_pe())) {
    // Undefined in the specification; other implementations return too.
    tolerate(runtime, call,
             fmt::format("this PE is not in the set (start {}, log stride {}, size {}); nothing is done", set.start,
                         set.log_stride, set.size));
    return;
  }
  const Job& job = runtime.job();
  const int me = map.member(runtime.my_pe()).value_or(0);
  Members members{job, map, me, nullptr};
  check_buffer(members, call, set.psync, SHMEM_BARRIER_SYNC_SIZE * sizeof(long));
  if (const auto here = map_here(job.nodes, map)) {
    members.barrier = &barrier_.emplace<WordBarrier>(job, ActiveSetName{call, map.start, map.stride}, *here, set.psync);
    members.here = *here;
    members.psync = set.psync;
  } else {
    members.barrier = &barrier_.emplace<GroupBarrier>(runtime.network().group_of(map, set.psync));
  }
  members_.emplace(members);
}

}  // namespace shmem::api
