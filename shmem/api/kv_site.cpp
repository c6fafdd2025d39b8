// SPDX-License-Identifier: Apache-2.0
#include "shmem/api/kv_site.hpp"

#include <limits>

#include "shmem/api/kv_far.hpp"
#include "shmem/team/peers.hpp"

namespace shmem::api {
namespace {

/// The sooner of two time limits, where 0 is none.
std::chrono::milliseconds shorter(std::chrono::milliseconds a, std::chrono::milliseconds b) {
  return a.count() > 0 && (b.count() == 0 || a < b) ? a : b;
}

/// Ends a call that waits for a partner, a PE of the world, who does not come. Looked at by several cores at once.
class PartnerWatch {
 public:
  PartnerWatch(const Job& job, int partner) : job_(job), partner_(partner), number_(job.nodes.number(partner)) {
    const auto limit =
        is_far() ? shorter(job.options.barrier_timeout, job.options.network_timeout) : job.options.barrier_timeout;
    deadline_ = limit.count() > 0 ? Clock::now() + limit : Clock::time_point::max();
  }

  std::errc operator()() const {
    if (job_.bootstrap->aborted()) {
      return std::errc::operation_canceled;
    }
    if (is_far() ? is_lost() : is_dead(job_, number_)) {
      return std::errc::owner_dead;
    }
    return Clock::now() < deadline_ ? std::errc{} : std::errc::timed_out;
  }

 private:
  [[nodiscard]] bool is_far() const { return number_ < 0; }
  /// To put nothing sends nothing; it is an Error if the PE is lost, and begins what tells of a loss later.
  [[nodiscard]] bool is_lost() const { return !job_.network->start_put({partner_, Segment::kHeap, 0}, this, 0); }

  const Job& job_;
  int partner_;
  int number_;  // on this node
  Clock::time_point deadline_;
};

/// Of memory of the heap: it is one block that is not free.
bool is_symmetric(const Job& job, const SymmetricHeap& heap, const std::byte* first, std::size_t bytes) {
  const std::byte* const last = first + (bytes - 1);
  const std::byte* const there = job.translate(first, job.me);
  if (there == nullptr || job.translate(last, job.me) != there + (bytes - 1)) {
    return false;
  }
  if (!job.is_in_heap(first)) {
    return true;
  }
  const auto offset = static_cast<std::size_t>(first - job.memory.heap(job.me));
  const auto block = heap.block_around(offset);
  return block && !block->free() && offset + bytes <= block->end();
}

}  // namespace

kv::Site site_of(Context& context, Team& team) {
  const Job& job = context.job();
  const SymmetricHeap& heap = context.heap();
  const TeamMap map = team.map();
  const auto translate = [&job, map](const void* mine, int pe) -> std::byte* {
    const int number = job.nodes.number(map.pe(pe));
    return number >= 0 ? job.translate(mine, number) : nullptr;
  };
  return {team.me(), team.size(), translate,
          [&job, &heap](const std::byte* mine, std::size_t bytes) { return is_symmetric(job, heap, mine, bytes); },
          // Global variables are the same ones on all PEs, and elsewhere in each.
          [&job](const void* mine) {
            return job.is_in_heap(mine)
                       ? static_cast<std::uint64_t>(static_cast<const std::byte*>(mine) - job.memory.heap(job.me))
                       : ~std::uint64_t{0};
          },
          [&job, map](int partner) { return PartnerWatch(job, map.pe(partner)); }, [&team] { return team.sync(); },
          [&job] { return job.bootstrap->aborted().value_or(""); },
          job.processors > 0 ? job.processors : std::numeric_limits<int>::max(), team.map_here().size,
          make_far(job, team)};
}

}  // namespace shmem::api
