// SPDX-License-Identifier: Apache-2.0
// Shuffles by a pair table: partners wait for each other, and nobody else does.
#pragma once

#include <string>

#include "shmem/kv/copier.hpp"
#include "shmem/kv/far_partner.hpp"
#include "shmem/kv/far_puts.hpp"
#include "shmem/kv/pair_steps.hpp"
#include "shmem/kv/site.hpp"
#include "shmem/kv/table_plan.hpp"

namespace shmem::kv {

/// Used by one thread at a time. Collective: each PE of the team makes the same number of calls with the same table and
/// cache, in the same order.
class PairShuffle {
 public:
  /// How many words this takes of each PE: symmetric, zero before any PE's first call, and there until all have ended
  /// their last.
  static std::size_t word_count(int pes, int cores) { return PairWords::count(pes, cores); }

  /// Site, copier and policy outlive this.
  PairShuffle(const Site& site, Copier& copier, const WaitPolicy& policy, SyncWord* words)
      : site_(site), copier_(copier), policy_(policy), words_(words) {}

  /// Returns when this PE's part is done: a sender has copied, a receiver's blocks are there, an idle PE returns at
  /// once. Everything is checked before anything moves; what only this PE can see to be wrong is told to its partner,
  /// whose call fails too (connection_aborted). The partner learns of bad_alloc as well, before it is thrown on. After
  /// an Error the destination blocks are undefined and all others are untouched; the next call works again.
  Result<void> run(const TablePlan& plan, const Cache& cache);

 private:
  struct Work {
    Role role = Role::kIdle;
    Pairing pairing{};
    CopyList copies{};
    std::size_t blocks = 0;
    std::uint64_t digest = 0;
    int senders = 0;  // of all pairs
  };

  Result<Work> prepare(const TablePlan& plan, const Cache& cache) const;
  Result<CopyList> list_copies(const SoundCache& cache, const MovePlan& plan) const;
  [[nodiscard]] PairWords words_of(int pe) const;
  [[nodiscard]] Pairing pairing_with(int partner) const;
  void tell_partner(const PairTable& table, std::errc error) const;
  Report shuffle(const Work& work);
  void copy(SoloCore<CoreGroup::Check>& caller, const Work& work);
  Report send(SoloCore<CoreGroup::Check>& caller, const Work& work);
  Result<Report> shuffle_far(const Work& work);
  Result<Report> receive_far(SoloCore<CoreGroup::Check>& caller, FarPartner& partner, const Work& work);
  Result<Report> send_far(SoloCore<CoreGroup::Check>& caller, FarPartner& partner, const Work& work);
  [[nodiscard]] tl::unexpected<Error> explain(const Work& work, const Report& report) const;
  [[nodiscard]] std::string name_call() const;
  [[nodiscard]] std::string name_part(const Work& work) const;

  const Site& site_;
  Copier& copier_;
  const WaitPolicy& policy_;
  SyncWord* words_;
  std::uint64_t count_ = 0;
};

}  // namespace shmem::kv
