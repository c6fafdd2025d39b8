// SPDX-License-Identifier: Apache-2.0
// Collective calls by messages: one PE of each node, its leader, meets those of the other nodes for all PEs of its own.
#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "shmem/net/messages.hpp"
#include "shmem/net/network.hpp"

namespace shmem {

struct Reduction;

/// Some PEs in an order, seen from one of them. All calls are collective among them, in the same order on all; a member
/// is named by its place in the list. One thread at a time.
///
/// An Error says in which call and for which PE it was waited. The group is of no use then: all later calls give the
/// same Error. The other members are told nothing; they fail when they lose that PE or wait for longer than the limit.
class LeaderGroup {
 public:
  using Limit = std::optional<std::chrono::nanoseconds>;

  /// `pes` (numbers in the world) and `team` are the same on all members. Two groups that have PEs in common differ in
  /// `team` while both exist, and for good after one has failed. `network` outlives this.
  LeaderGroup(Network& network, std::vector<int> pes, int me, std::uint32_t team);

  [[nodiscard]] int size() const { return static_cast<int>(pes_.size()); }
  [[nodiscard]] int me() const { return me_; }

  /// Dissemination, or pairwise exchange of a power of two members: ceil(log2 n) rounds. `limit`, for all of it, in
  /// place of the network's for each wait.
  Result<void> barrier(Limit limit = {});

  // The same in two phases. All members make it so; until it is over other calls are refused
  // (device_or_resource_busy).
  /// Waits for nobody.
  Result<void> start_barrier();
  /// True: all have started it, and it is over. Waits for nobody. Others may need this PE to look before it ends for
  /// them. REQUIRES: barrier_is_open().
  Result<bool> test_barrier();
  /// Waits for the end. After a `limit` (timed_out) the barrier is still open and can be waited for again; after the
  /// network's the group has failed. REQUIRES: barrier_is_open().
  Result<void> finish_barrier(Limit limit = {});
  [[nodiscard]] bool barrier_is_open() const { return open_.has_value(); }

  /// `data` of member `root`, at all. A binomial tree; a chain in segments where message_cost.hpp finds that better.
  Result<void> broadcast(void* data, std::size_t bytes, int root);

  /// `data` of all members combined, in the order of the list: the same bits on all. Recursive doubling; each member
  /// combines a share where message_cost.hpp finds that better.
  Result<void> allreduce(void* data, std::size_t count, const Reduction& reduction);

  /// `data` of the members before this one combined, in the order of the list; zeros at the first. ceil(log2 n) rounds.
  Result<void> exclusive_scan(void* data, std::size_t count, const Reduction& reduction);

  /// Everybody's piece, one behind the other: in `all` this member's own stands at its place. As the barrier, with
  /// what each has: ceil(log2 n) rounds, each byte received once, which is the least of both; a ring has the same bytes
  /// in n
  /// - 1 rounds.
  Result<void> allgather(std::span<const std::size_t> bytes_of_each, void* all);

  /// What this member has, from everybody, in the order of the list.
  template <typename T>
  Result<std::vector<T>> tell_all(const T& mine) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(pes_.size());
    all[static_cast<std::size_t>(me_)] = mine;
    const std::vector<std::size_t> bytes(pes_.size(), sizeof(T));
    if (auto ok = allgather(bytes, all.data()); !ok) return tl::make_unexpected(ok.error());
    return all;
  }

  /// from[i] goes to member i, to[i] comes from it: as long as what that member gives. They do not overlap. Pairwise.
  Result<void> alltoall(std::span<const std::span<const std::byte>> from, std::span<const std::span<std::byte>> to);

 private:
  /// A barrier in two phases: in which round it is.
  struct OpenBarrier {
    OpenBarrier(Network& network, std::uint64_t tag) : messages(network, tag) {}
    Messages messages;
    int distance = 1;
  };
  struct Range {
    std::size_t offset, bytes;
  };

  /// One call: `body(messages)`, which gives a Result<void>.
  template <typename Body>
  Result<void> run(const char* call, const Deadline& deadline, Body body) {
    if (auto ok = ready(call); !ok) return ok;
    Messages messages(network_, tag(false, ++calls_), deadline);
    const Result<void> ok = body(messages);
    if (aside_.size() > kMostKept) aside_ = {};
    return ok ? ok : end(call, ok.error());
  }
  [[nodiscard]] Result<void> ready(const char* call) const;
  [[nodiscard]] Error explained(const char* call, Error error) const;
  /// The group has failed.
  tl::unexpected<Error> end(const char* call, const Error& error);
  [[nodiscard]] std::uint64_t tag(bool split, std::uint64_t number) const;
  /// The world number of the member so far from this one, around the list.
  [[nodiscard]] int pe_at(int distance) const;

  /// A power of two members: in each round two of them exchange what they have, as many messages as by dissemination
  /// but with fewer others.
  [[nodiscard]] bool in_pairs() const { return std::has_single_bit(pes_.size()); }
  Result<void> begin_round(Messages& messages, int distance);
  Result<void> next_round();
  Result<void> watch_barrier(std::chrono::nanoseconds limit);
  Result<void> broadcast_by_tree(Messages& messages, std::byte* data, std::size_t bytes, int root);
  Result<void> broadcast_by_chain(Messages& messages, std::byte* data, std::size_t bytes, int root,
                                  std::size_t segment);
  Result<void> gather(Messages& messages, std::span<const std::size_t> offsets, std::byte* all);
  Result<void> gather_in_pairs(Messages& messages, std::span<const std::size_t> offsets, std::byte* all);
  Result<void> gather_in_line(Messages& messages, std::span<const std::size_t> offsets, std::byte* all);
  /// The pieces of `count` members from one on, around the list: two ranges, of which either may be empty.
  [[nodiscard]] std::array<Range, 2> ranges(std::span<const std::size_t> offsets, int first, int count) const;
  /// Until the call ends, or asks again.
  [[nodiscard]] std::byte* aside(std::size_t bytes);
  Result<void> exchange(Messages& messages, std::span<const std::span<const std::byte>> from,
                        std::span<const std::span<std::byte>> to);
  Result<void> reduce_by_doubling(Messages& messages, std::byte* data, std::size_t count, const Reduction& reduction);
  Result<void> reduce_by_shares(Messages& messages, std::byte* data, std::size_t count, const Reduction& reduction);
  Result<void> scan(Messages& messages, std::byte* data, std::size_t count, const Reduction& reduction);

  /// What calls put aside is kept up to here: new memory costs more than the copies to it.
  static constexpr std::size_t kMostKept = std::size_t{4} << 20;

  Network& network_;
  const std::vector<int> pes_;
  const int me_;
  const std::uint32_t team_;
  std::uint64_t calls_ = 0;
  std::uint64_t split_barriers_ = 0;
  std::vector<std::byte> aside_;
  std::optional<OpenBarrier> open_;
  std::optional<Error> failed_;
};

}  // namespace shmem
