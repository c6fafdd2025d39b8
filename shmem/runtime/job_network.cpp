// SPDX-License-Identifier: Apache-2.0
#include "shmem/runtime/job_network.hpp"

#include <fmt/format.h>

#include <chrono>
#include <span>
#include <vector>

#include "shmem/layout/parking.hpp"
#include "shmem/memory/ordering.hpp"
#include "shmem/net/shrink_tags.hpp"

namespace shmem {
namespace {

/// The ids of active sets' groups have this bit; those of teams are below it (team/spanning_team.cpp).
constexpr std::uint32_t kActiveSets = std::uint32_t{1} << 30;

}  // namespace

// UCX 1.13 ends a process that closes connections while others are made. So unless all PEs have disconnected, the
// network is leaked until the process ends.
JobNetwork::~JobNetwork() {
  if (!disconnected_) {
    static_cast<void>(network_.release());
  }
}

NetworkSettings JobNetwork::settings(bool survives) {
  // Puts before a barrier complete in it: a user who limits barriers means puts, too.
  const bool own_limit = job_.options.network_timeout.count() != 0;
  NetworkSettings settings{.segments = {{job_.memory.heap(job_.me), job_.memory.heap_size()}},
                           .is_remote = {},
                           .names = {},
                           .limit = own_limit ? job_.options.network_timeout : job_.options.barrier_timeout,
                           .warning = job_.options.barrier_warning,
                           .policy = job_.policy,
                           .worked =
                               [this] {
                                 // Requests change words with less than wake_parked needs.
                                 shmem::quiet();
                                 wake_parked(job_, job_.me);
                               },
                           .rdma_only = job_.options.network_require == NetworkUse::kRdma};
  if (survives) {
    settings.interrupts = interrupted_by_shrink;
  }
  const std::size_t globals = job_.memory.globals_size();
  settings.segments.emplace_back(globals != 0 ? job_.memory.globals(job_.me) : nullptr, globals);
  settings.segments.emplace_back(std::as_writable_bytes(std::span(*board_)));
  for (int pe = 0; pe < job_.world_size(); ++pe) {
    settings.is_remote.push_back(pe != job_.world_me());
    settings.names.push_back(fmt::format("PE {} (on {})", pe, job_.nodes.host(pe)));
  }
  return settings;
}

Result<void> JobNetwork::open(bool survives) {
  if (!job_.on_several_nodes()) {
    return {};
  }
  board_ = std::make_unique<RemoteBoard>();
  job_.remote_board = board_.get();
  auto network = make_network(job_.world_bootstrap(), settings(survives));
  if (!network) {
    return network.error();
  }
  network_ = *std::move(network);
  job_.network = network_.get();
  job_.policy.background = network_.get();
  return job_.options.progress_thread ? start_progress() : Result<void>();
}

Result<void> JobNetwork::start_progress() {
  auto progress = start_progress_thread(*network_);
  if (!progress) {
    return progress.error();
  }
  progress_ = *std::move(progress);
  return {};
}

ProcessGroup& JobNetwork::group_of(const TeamMap& set, const long* psync) const {
  // The place of pSync in symmetric memory: the same on all PEs.
  const auto place = job_.locate_remote(psync, sizeof *psync, set.pe(0));
  const std::uint64_t offset = place ? place->offset / sizeof *psync : 0;
  const bool global = place && place->segment == Segment::kGlobals;
  const std::uint32_t own = (static_cast<std::uint32_t>(offset) << 1 | (global ? 1U : 0U)) % kActiveSets;
  // Those in registered memory count from the end, by slot.
  const bool registered = place && place->segment >= Segment::kFirstRegistered;
  const auto slot = registered ? static_cast<std::uint32_t>(place->segment) << 21 : 0U;
  const std::uint32_t id = registered ? kActiveSets - 1 - (own + slot) % kActiveSets : own;
  const std::lock_guard lock(groups_mutex_);
  const SetOfPes key{set.start, set.stride, set.size, reinterpret_cast<std::uintptr_t>(psync)};
  const auto found = groups_.find(key);
  if (found != groups_.end()) {
    return found->second;
  }
  std::vector<int> pes;
  pes.reserve(static_cast<std::size_t>(set.size));
  for (int i = 0; i < set.size; ++i) {
    pes.push_back(set.pe(i));
  }
  const int me = set.member(job_.world_me()).value_or(0);
  return groups_.try_emplace(key, *network_, std::move(pes), me, id | kActiveSets).first->second;
}

void JobNetwork::forget_groups(std::span<const std::byte> block) {
  const auto first = reinterpret_cast<std::uintptr_t>(block.data());
  const std::lock_guard lock(groups_mutex_);
  std::erase_if(groups_, [&](const auto& group) { return group.first.psync - first < block.size(); });
}

// No PE leaves while another one needs its progress. The bootstrap makes none while it waits, so a thread does. If PEs
// have died, there is no such wait: the last barrier of the others has come before, and what they have sent in it
// arrives after their end, too.
Result<void> JobNetwork::disconnect(bool all) {
  if (!network_) {
    return {};
  }
  if (!all) {
    static_cast<void>(network_->quiet());  // an operation on a dead PE fails
    return {};
  }
  auto ok = network_->quiet();
  if (ok && !progress_.joinable()) {
    ok = start_progress();
  }
  if (ok) {
    ok = job_.bootstrap->barrier();
  }
  disconnected_ = ok.has_value();
  return ok;
}

std::string JobNetwork::reason_of_loss(bool by_leader) const {
  if (!network_ || (!network_->lost() && !by_leader)) {
    return "";
  }
  constexpr std::chrono::milliseconds kLongest{2000};
  const auto end = Clock::now() + kLongest;
  auto reason = job_.bootstrap->aborted();
  while (!reason && Clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
    reason = job_.bootstrap->aborted();
  }
  return reason && !reason->empty() ? "; the job was ended: " + *reason : "";
}

}  // namespace shmem
