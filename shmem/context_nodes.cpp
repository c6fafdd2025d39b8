// SPDX-License-Identifier: Apache-2.0
// What the context has in a job on several nodes.
#include "shmem/context.hpp"

namespace shmem {
namespace {

/// Of the numbers by which groups meet, those of active sets; teams have those below.
constexpr std::uint32_t kActiveSets = std::uint32_t{1} << 30;

}  // namespace

Result<void> Context::open_network() {
  if (!job_.on_several_nodes()) {
    return {};
  }
  // Puts before a barrier end in it: who limits the one means the other, too.
  const bool own_limit = job_.options.network_timeout.count() != 0;
  NetworkSettings settings{.segments = {{job_.memory.heap(job_.me), job_.memory.heap_size()}},
                           .is_far = {},
                           .names = {},
                           .limit = own_limit ? job_.options.network_timeout : job_.options.barrier_timeout,
                           .patience = job_.policy,
                           .threads = true};
  const std::size_t globals = job_.memory.globals_size();
  settings.segments.emplace_back(globals != 0 ? job_.memory.globals(job_.me) : nullptr, globals);
  job_.far_board = std::make_unique<FarBoard>();
  settings.segments.emplace_back(std::as_writable_bytes(std::span(*job_.far_board)));
  for (int pe = 0; pe < job_.world_size(); ++pe) {
    settings.is_far.push_back(pe != job_.world_me());
    settings.names.push_back("PE " + std::to_string(pe) + " (on " + job_.nodes.host(pe) + ")");
  }
  auto network = make_network(job_.world_bootstrap(), std::move(settings));
  if (!network) {
    return tl::make_unexpected(network.error());
  }
  job_.network = *std::move(network);
  job_.policy.background = job_.network.get();
  return job_.options.progress_thread ? start_progress_thread() : Result<void>();
}

Result<void> Context::start_progress_thread() {
  auto progress = ProgressThread::start(*job_.network);
  if (!progress) {
    return tl::make_unexpected(progress.error());
  }
  progress_ = *std::move(progress);
  return {};
}

LeaderGroup& Context::group_of(const TeamMap& set, const long* psync) const {
  // The same on all PEs: where pSync stands among what is symmetric. Above the numbers of teams.
  const auto place = job_.locate_far(psync, sizeof *psync, set.pe(0));
  const std::uint64_t offset = place ? place->offset / sizeof *psync : 0;
  const std::uint32_t id =
      (static_cast<std::uint32_t>(offset) << 1 | (place && place->segment == Segment::kGlobals ? 1U : 0U)) %
      kActiveSets;
  const std::lock_guard lock(groups_mutex_);
  const SetOfPes key{set.start, set.stride, set.size, reinterpret_cast<std::uintptr_t>(psync)};
  const auto found = groups_.find(key);
  if (found != groups_.end()) {
    return found->second;
  }
  std::vector<int> pes;
  for (int i = 0; i < set.size; ++i) pes.push_back(set.pe(i));
  return groups_.try_emplace(key, *job_.network, std::move(pes), set.member(my_pe()).value_or(0), id | kActiveSets)
      .first->second;
}

// Nobody goes while another needs his answers: the bootstrap gives none while it waits, therefore a thread does.
Result<void> Context::part_from_other_nodes() {
  auto ok = job_.network->quiet();
  if (ok && !progress_) {
    ok = start_progress_thread();
  }
  if (ok) {
    ok = job_.bootstrap->barrier();
  }
  parted_ = ok.has_value();
  return ok;
}

void Context::forsake_network() {
  if (!parted_) {
    static_cast<void>(job_.network.release());
  }
}

}  // namespace shmem
