// SPDX-License-Identifier: Apache-2.0
// Shuffles by a list of moves: all PEs of a team agree that it can be done, and then do it.
//
//   agree                      digests and errors of all PEs; a sync of the team
//   put what can go at once    from this PE's cache into those of PEs on other nodes
//   copy what can go at once   by all cores, from this PE's cache into those of others; whoever is done with that, or
//                              has none, copies what others send to it
//   for each window:           blocks whose destination somebody still has to read
//     stage                    into memory of this PE
//     sync                     everybody has read what others will overwrite
//     write                    out of that memory
//   clear                      what has been moved away
//   sync                       everything is where it belongs
//
// PEs of one node copy into each other's memory. What goes to another node has been put there, and that is known,
// before its sender comes to the next sync. There syncs are votes: who could not put something says so, and all hear of
// it.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "shmem/kv/copier.hpp"
#include "shmem/kv/far_puts.hpp"
#include "shmem/kv/plan.hpp"
#include "shmem/kv/private_memory.hpp"
#include "shmem/kv/site.hpp"
#include "shmem/kv/windows.hpp"

namespace shmem::kv {

/// What a PE says of a call before anything moves. In symmetric memory; one for calls of even number and one for odd
/// ones, as a PE may begin its next call while another still reads of this one.
struct alignas(64) Proposal {
  // Relaxed: what makes them visible is the sync between writing and reading.
  std::atomic<std::uint64_t> error;  // std::errc
  std::atomic<std::uint64_t> plan, cache;
  std::atomic<std::uint64_t> taken;  // parts of what it sends at once (CommonCopies)
};
static_assert(sizeof(Proposal) == 64);

/// Used by one thread at a time. Collective: each PE of the team makes the same calls in the same order.
class TeamShuffle {
 public:
  static constexpr std::size_t kProposals = 2;

  /// `proposals` is symmetric, and there until all PEs have ended their last call. Site and copier outlive this.
  /// `staging_room` is the same on all PEs.
  TeamShuffle(const Site& site, Copier& copier, Proposal* proposals, std::size_t staging_room)
      : site_(site), copier_(copier), proposals_(proposals), staging_room_(staging_room) {}

  /// Returns when all blocks of all PEs are where they belong. Error: on all PEs, before anything moves, if anything is
  /// wrong on one of them; or what ended a sync. nullptr: this PE has no plan, which is an Error on all.
  Result<void> run(const MovePlan* plan, const Cache& cache);

 private:
  /// To one PE of another node; where the copies go to is said as in Far.
  struct FarCopies {
    int pe;
    CopyList copies;
  };
  /// All that is needed, so that nothing can fail any more but a sync or a put.
  struct Work {
    SoundCache cache;
    std::vector<CommonCopies> direct;  // what this PE sends, and then what those send that send to it
    std::vector<Move> staged;
    std::vector<std::byte*> staged_to;  // plane 0 of the destination's cache, by move; as cache_of()
    std::vector<FarCopies> far;         // what this PE sends to other nodes at once
    CopyList stage, write;              // of one window; they have room
    std::vector<Window> windows;
    std::vector<std::int64_t> cleared;
    bool clears;  // some PE does
    int pes;      // of this node that have something to do
    FarPuts puts;
  };

  /// What a Proposal says.
  struct Said {
    std::uint64_t error, plan, cache;
  };

  Result<Work> prepare(const MovePlan* plan, const Cache& cache);
  Result<CommonCopies> list_direct(const MovePlan& plan, const SoundCache& cache, int pe) const;
  Result<void> list_far(const MovePlan& plan, Work& work) const;
  Result<void> find_staged(const MovePlan& plan, Work& work);
  Result<void> agree(const MovePlan* plan, const Result<Work>& mine);
  [[nodiscard]] Result<void> compare() const;
  Result<void> come_to_agree(const Result<Work>& mine, const Proposal& proposal);
  [[nodiscard]] Result<Said> said_by(int pe) const;
  Result<void> shuffle(Work& work);
  Result<void> pass_staged(Work& work, const Window& window);
  void put_staged(Work& work, const Window& window);
  Result<void> meet(Work& work);
  void clear(const Work& work);
  [[nodiscard]] Proposal& proposal_of(int pe) const {
    return *reinterpret_cast<Proposal*>(site_.translate(&proposals_[count_ % kProposals], pe));
  }
  [[nodiscard]] tl::unexpected<Error> failure(const Error& error) const;

  const Site& site_;
  Copier& copier_;
  Proposal* proposals_;
  std::size_t staging_room_;
  PrivateMemory staging_;
  std::optional<Error> broken_;  // of the call that ended in the middle, between nodes
  bool all_agree_ = true;        // the last vote
  std::uint64_t count_ = 0;
};

}  // namespace shmem::kv
