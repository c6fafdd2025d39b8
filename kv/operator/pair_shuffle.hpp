// SPDX-License-Identifier: Apache-2.0
// Shuffles in pairs: only partners wait for each other.
#pragma once

#include <string>

#include "kv/operator/copier.hpp"
#include "kv/operator/pair_plan.hpp"
#include "kv/operator/pair_steps.hpp"
#include "kv/operator/private_puts.hpp"
#include "kv/operator/remote.hpp"

namespace shmem::kv {

/// Used by one thread at a time. Collective: each PE of the team makes the same number of calls with the same table and
/// cache, in the same order.
class PairShuffle {
 public:
  /// The number of words on each PE: symmetric, zero before the first call of any PE, and not freed before all PEs have
  /// ended their last one.
  static std::size_t word_count(int pes, int cores) { return PartnerWords::count(pes, cores); }

  /// Team, copier and policy outlive this.
  PairShuffle(OperatorTeam& team, Copier& copier, const WaitPolicy& policy, SyncWord* words)
      : team_(team), copier_(copier), policy_(policy), words_(words) {}

  /// Returns when this PE's part is done: a sender has copied, or a receiver's blocks have arrived; an idle PE returns
  /// at once. Everything is checked before anything moves. An Error that only this PE can see is told to its partner,
  /// whose call fails too (connection_aborted); so is std::bad_alloc, before it is thrown on. After an Error the
  /// destination blocks are undefined and all others are unchanged; the next call works again.
  Result<void> run(const PairPlan& plan, const Cache& cache);

 private:
  /// A call whose arguments are valid.
  struct Prepared {
    Role role = Role::kIdle;
    Pairing pairing{};
    CopyList copies{};
    const std::byte* v = nullptr;  // of this PE's cache
    bool takes_puts = false;       // the partner
    std::size_t blocks = 0;
    std::uint64_t digest = 0;
    int senders = 0;  // in all pairs
  };

  Result<Prepared> prepare(const PairPlan& plan, const Cache& cache) const;
  Result<CopyList> list_copies(const CheckedCache& cache, const MovePlan& plan) const;
  [[nodiscard]] PartnerWords words_of(int pe) const;
  [[nodiscard]] Pairing pairing_with(int partner) const;
  void tell_partner(const PairTable& table, std::errc error) const;
  Result<Report> shuffle(const Prepared& call);
  void copy(SoloCore<CoreGroup::Check>& caller, const Prepared& call);
  Result<Report> send(SoloCore<CoreGroup::Check>& caller, const Prepared& call);
  Result<void> put(SoloCore<CoreGroup::Check>& caller, const Prepared& call);
  Result<Report> shuffle_remote(const Prepared& call);
  Result<Report> receive_remote(SoloCore<CoreGroup::Check>& caller, RemotePartner& partner, const Prepared& call);
  Result<Report> send_remote(SoloCore<CoreGroup::Check>& caller, RemotePartner& partner, const Prepared& call);
  [[nodiscard]] Error explain(const Prepared& call, const Report& report) const;
  [[nodiscard]] std::string name_call() const;
  [[nodiscard]] std::string name_part(const Prepared& call) const;

  OperatorTeam& team_;
  Copier& copier_;
  const WaitPolicy& policy_;
  SyncWord* words_;
  std::uint64_t count_ = 0;
};

}  // namespace shmem::kv
