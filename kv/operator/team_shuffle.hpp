// SPDX-License-Identifier: Apache-2.0
// Shuffles by a list of moves: all PEs of a team agree that the shuffle is possible, and then execute it.
//
//   agree                   exchange digests and errors; a sync of the team
//   put immediate moves     from this PE's cache into caches of remote PEs, and of PEs whose caches are private
//   copy immediate moves    from this PE's cache into caches of this node, by all cores; then what other PEs of the
//                           node send to this one, unless they have copied it already
//   for each staging pass:  blocks whose destination another PE still has to read
//     stage                 into memory of this PE
//     sync                  all PEs have read what others will overwrite
//     write                 from that memory to the destinations
//   clear                   moved blocks
//   sync                    all blocks are at their destinations
//
// PEs of one node copy into each other's memory. Puts have arrived before their sender enters the next sync. If there
// can be puts, these syncs are votes, by which all PEs learn that a put has failed.
//
// If the cache of some PE is private to its process, PEs cannot copy what others send, so each sends all of its own.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "kv/operator/copier.hpp"
#include "kv/operator/plan.hpp"
#include "kv/operator/private_puts.hpp"
#include "kv/operator/remote.hpp"

namespace shmem::kv {

/// What a PE publishes about a call before anything moves. In symmetric memory; one for calls of even number and one
/// for odd ones, because a PE may begin its next call while another one still reads about this one.
struct alignas(64) Proposal {
  // Relaxed: the sync between writing and reading makes them visible.
  std::atomic<std::uint64_t> error;  // std::errc
  std::atomic<std::uint64_t> plan, cache;
  TakenParts taken;                   // of its immediate moves
  std::atomic<std::uint64_t> failed;  // FailedCopy::word()
};
static_assert(sizeof(Proposal) == 64);

/// The part of each staged block that is moved in one pass, the same on all PEs: the same bytes of its chunks in some
/// successive planes.
struct StagingPass {
  std::size_t first_plane, planes;
  std::size_t offset, size;  // within each chunk

  [[nodiscard]] std::size_t bytes() const { return planes * size; }
};

/// Passes that cover a block, the largest first: as much as each of `blocks` blocks may have of `room` bytes, but at
/// least a cache line. None without blocks.
std::vector<StagingPass> staging_passes(const Layout& layout, std::size_t blocks, std::size_t room);

/// Used by one thread at a time. Collective: each PE of the team makes the same calls in the same order.
class TeamShuffle {
 public:
  static constexpr std::size_t kProposals = 2;

  /// `proposals` is symmetric, and exists until all PEs have ended their last call. Team and copier outlive this.
  /// `staging_room` is the same on all PEs.
  TeamShuffle(OperatorTeam& team, Copier& copier, Proposal* proposals, std::size_t staging_room)
      : team_(team), copier_(copier), proposals_(proposals), staging_room_(staging_room) {}

  /// Returns when all blocks of all PEs are at their destinations. If there is an Error on one PE before anything
  /// moves, all PEs return one, and nothing moves; nullptr, a PE without a plan, is such an Error. Later Errors come
  /// from a sync.
  Result<void> run(const MovePlan* plan, const Cache& cache);

 private:
  /// To one PE that takes puts; destinations are named as in OperatorTeam.
  struct PutCopies {
    int pe = 0;
    CopyList copies;
  };
  /// The cache of a PE that blocks go to.
  struct Destination {
    std::byte* k = nullptr;  // as in cache_of()
    bool takes_puts = false;
  };
  class Destinations;
  /// A call that can only fail in a sync or a put.
  struct Prepared {
    CheckedCache cache{};
    std::vector<CopyQueue> queues{};          // immediate moves of this PE, then of those that send to it
    std::vector<PutCopies> put{};             // immediate moves of this PE by puts
    std::vector<Move> staged{};               // of this PE
    std::vector<Destination> destinations{};  // by staged move
    std::vector<StagingPass> passes{};
    CopyList stage{}, write{};  // of one pass; with reserved memory
    std::vector<std::int64_t> cleared{};
    bool clears = false;      // some PE does
    int busy_on_node = 0;     // PEs of this node that have something to do
    std::uint32_t syncs = 0;  // so far, after agree()
    RemotePuts remote_puts;
    PrivatePuts private_puts;
  };

  /// The values of a Proposal.
  struct Published {
    std::uint64_t error, plan, cache;
  };

  Result<Prepared> prepare(const MovePlan* plan, const Cache& cache);
  Result<CopyQueue> queue_of(const MovePlan& plan, const CheckedCache& cache, int pe) const;
  Result<void> list_puts(const MovePlan& plan, Prepared& call) const;
  Result<void> list_staged(const MovePlan& plan, Prepared& call);
  Result<void> agree(const MovePlan* plan, const Result<Prepared>& mine);
  [[nodiscard]] Result<void> compare() const;
  Result<void> sync_proposals(const Result<Prepared>& mine, const Proposal& proposal);
  [[nodiscard]] Result<Published> published_by(int pe) const;
  Result<void> shuffle(Prepared& call);
  Result<void> pass_staged(Prepared& call, const StagingPass& pass);
  void put_staged(Prepared& call, const StagingPass& pass);
  void put(Prepared& call, int pe, std::byte* to, const std::byte* from, std::size_t size);
  Result<void> finish_puts(Prepared& call);
  Result<void> sync_puts(Prepared& call);
  Result<void> vote_on_puts(const Result<void>& sent);
  Result<void> compare_failures(Prepared& call, const Result<void>& sent);
  /// Calls may have to send blocks by puts. The same on all PEs.
  [[nodiscard]] bool has_puts(const CheckedCache& cache) const { return team_.spans_nodes() || !cache.mapped; }
  void clear(const Prepared& call);
  [[nodiscard]] Proposal& proposal_of(int pe) const {
    return *reinterpret_cast<Proposal*>(team_.translate(&proposals_[count_ % kProposals], pe));
  }
  [[nodiscard]] Error failure(const Error& error) const;

  OperatorTeam& team_;
  Copier& copier_;
  Proposal* proposals_;
  std::size_t staging_room_;
  PrivateMemory staging_;
  std::optional<Error> broken_;  // of a call with puts that ended in the middle
  bool all_agree_ = true;        // in the last vote
  std::uint64_t count_ = 0;
};

}  // namespace shmem::kv
