// SPDX-License-Identifier: Apache-2.0
// Collectives on memory that only its own process can reach: each member copies what it gives to a stage that all
// members can read, piece by piece. Small data goes along when they meet, and buffers in the group's symmetric memory
// are used where they are (direct.hpp). Wherever the data is, a member does the same with it, by shares.hpp. The stages
// of members on several nodes: staged_nodes.hpp.
#pragma once

#include <optional>
#include <vector>

#include "shmem/collective/staged_call.hpp"
#include "shmem/collective/staged_nodes.hpp"
#include "shmem/collective/symmetric_memories.hpp"
#include "shmem/collective/typed_reduction.hpp"
#include "shmem/team/team.hpp"

namespace shmem {

/// How a member's data has moved.
struct StagedStatistics {
  std::uint64_t direct_calls = 0;  // on buffers in symmetric memory
  std::uint64_t staged_bytes = 0;  // that this member has written to its stage
};

/// One member's side. Used by one thread at a time, and nothing else uses the team.
///
/// A call begins with an exchange of what the members are about to do, so that they find out if their calls differ. It
/// takes small data along. For larger data the exchange is the sync after which the first pieces may be read: from the
/// stages, or, if all members show where their buffers are in symmetric memory, from there.
class StagedCollectives {
 public:
  StagedCollectives(Job& job, Team& team, const Stages& stages, const SymmetricMemories& memories);
  /// From now on a barrier is one of the team, which may go through the device: members whose calls differ from it then
  /// wait for each other until they time out. All members decide alike.
  void leave_barriers_to_team() { team_barriers_ = true; }

  /// Limits each wait for other nodes from now on; 0: no limit.
  void set_limit(std::chrono::nanoseconds limit) {
    if (nodes_) {
      nodes_->set_limit(limit);
    }
  }
  /// Collective. After an Error of arguments, which all members get, the next call can be made. After any other one
  /// has_failed().
  Result<void> run(const StagedCall& call);
  [[nodiscard]] StagedStatistics statistics() const {
    return nodes_ ? StagedStatistics{0, nodes_->staged_bytes()} : statistics_;
  }
  [[nodiscard]] bool has_failed() const {
    return team_.eager().has_failed() || !team_.is_ready() || (nodes_ && nodes_->has_failed());
  }

 private:
  /// In a CallHead, after its own flag.
  enum Flags : std::uint64_t { kInline = 2, kDirect = 4 };
  static constexpr std::size_t kInlineRoom = kEagerLimit - sizeof(CallHead);
  struct Offer;

  [[nodiscard]] std::byte* stage(int member, unsigned half) const;
  [[nodiscard]] std::byte* next() const { return stage(team_.me(), turn_ + 1); }
  [[nodiscard]] std::byte* staged(int member) const { return stage(member, turn_); }
  [[nodiscard]] const CallHead* head(int member) const { return heads_[static_cast<std::size_t>(member)]; }
  [[nodiscard]] bool has_given(int member, Flags flag) const { return (head(member)->flags & flag) != 0; }
  /// What a member has given behind its head.
  [[nodiscard]] const std::byte* data(int member) const { return reinterpret_cast<const std::byte*>(head(member) + 1); }

  // What this member has in a call.
  [[nodiscard]] std::size_t blocks(const StagedCall& call) const { return has_blocks(call.kind) ? heads_.size() : 1; }
  [[nodiscard]] const std::byte* own_block(const StagedCall& call) const;
  [[nodiscard]] Share my_share(const StagedCall& call, std::size_t size) const;
  [[nodiscard]] bool keeps_own(const StagedCall& call) const;
  void write(std::byte* to, const StagedCall& call) const;
  void stage_piece(const StagedCall& call, std::size_t offset, std::size_t most);

  // Where it finds what each member gives it, and puts sums; and what it does there.
  template <typename Where>
  void set_from(Where where) {
    for (int member = 0; member < team_.size(); ++member) {
      from_[static_cast<std::size_t>(member)] = where(member);
    }
  }
  void put_sums_to(const StagedCall& call, std::size_t offset);
  void take_or_combine(const StagedCall& call, std::size_t offset, std::size_t most, const Share& share);

  // When the members meet.
  Result<void> meet(const CallHead& mine, std::size_t size, Writer write);
  void part() {
    if (!nodes_) {
      team_.eager().end(EagerChannel::Begun::kThis);
    }
  }
  Result<void> next_piece();
  Result<void> prepare(const StagedCall& call);
  Result<void> run_large(const StagedCall& call);
  [[nodiscard]] Offer offer_of(const StagedCall& call) const;
  Result<void> offer(const StagedCall& call, Offer& mine);
  Result<void> take_along(const StagedCall& call, Offer& mine);
  Result<void> run_directly(const StagedCall& call, std::size_t row);
  Result<void> run_staged(const StagedCall& call, const Offer& mine, bool again);
  Result<void> make_staged(const StagedCall& call, std::size_t offset, std::size_t most);

  const Job& job_;
  Team& team_;
  const Stages stages_;
  const SymmetricMemories& memories_;
  std::optional<StagedOnNodes> nodes_;  // for a team on several
  StagedStatistics statistics_;
  unsigned turn_ = 0;                   // the half that was filled last is turn_ % 2
  std::vector<const CallHead*> heads_;  // of each member, at the last meeting
  std::vector<const std::byte*> from_;  // what each member gives to this one; nullptr: nothing, or nothing more
  std::vector<std::byte*> to_;          // where sums go
  TypedReduction reduction_{};          // of the running call
  bool team_barriers_ = false;
};

}  // namespace shmem
