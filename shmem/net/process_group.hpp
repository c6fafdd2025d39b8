// SPDX-License-Identifier: Apache-2.0
// Collective calls by messages among some PEs of a job: the leaders of its nodes, for example, or all members of a
// team.
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

#include "shmem/memory/scratch_buffer.hpp"
#include "shmem/net/message_barrier.hpp"
#include "shmem/net/messages.hpp"
#include "shmem/net/network.hpp"

namespace shmem {

struct Reduction;

/// An ordered list of PEs, seen from one of them. All calls are collective among them, in the same order on all; a
/// member is named by its place in the list. Used by one thread at a time.
///
/// An Error names the call and the awaited PE. After an Error all later calls return the same one. The other members
/// are not notified; they fail when they lose that PE or reach the limit.
class ProcessGroup {
 public:
  using Limit = std::optional<std::chrono::nanoseconds>;

  /// `pes` (numbers in the world) and `team` are the same on all members. Two groups with common PEs differ in `team`
  /// while both exist, and for good after one has failed. `network` outlives this.
  ProcessGroup(Network& network, std::vector<int> pes, int me, std::uint32_t team);

  [[nodiscard]] int size() const { return static_cast<int>(pes_.size()); }
  [[nodiscard]] int me() const { return me_; }

  /// Of each later call that has no limit of its own, instead of the network's for each wait.
  void set_limit(Limit limit) { limit_ = limit; }
  [[nodiscard]] bool has_failed() const { return failed_.has_value(); }
  /// This member cannot go on with a call that the others have begun: the group has failed.
  Error give_up(const char* call, const Error& error) { return end(call, error); }

  /// How barriers are made from now on; at first npu_v1. The same on all members, between the same two calls.
  void set_barrier(const NodesChoice& choice);
  [[nodiscard]] const NodesChoice& barrier_choice() const { return choice_; }
  /// `limit` is for the whole barrier, instead of the network's for each wait.
  Result<void> barrier(Limit limit = {});

  // A barrier in two phases. All members make it so; until it is over, other calls are refused
  // (device_or_resource_busy).
  /// Does not wait.
  Result<void> start_barrier();
  /// True: all have started it, and it is over. Does not wait. Other members may need this call to make progress.
  /// REQUIRES: barrier_is_open().
  Result<bool> test_barrier();
  /// Waits for the end. After `limit` (timed_out) the barrier is still open and can be waited for again; after the
  /// network's limit the group has failed. REQUIRES: barrier_is_open().
  Result<void> finish_barrier(Limit limit = {});
  [[nodiscard]] bool barrier_is_open() const { return open_.has_value(); }

  /// Sends `data` of member `root` to all. A binomial tree, or a chain in segments if message_cost.hpp finds that
  /// better.
  Result<void> broadcast(void* data, std::size_t bytes, int root);

  /// Combines `data` of all members in the order of the list: the same bits on all. Recursive doubling, or each member
  /// combines a share if message_cost.hpp finds that better.
  Result<void> allreduce(void* data, std::size_t count, const Reduction& reduction);

  /// Combines `data` of the members before this one, in the order of the list; zeros at the first. ceil(log2 n) rounds.
  Result<void> exclusive_scan(void* data, std::size_t count, const Reduction& reduction);

  /// Gathers the pieces of all members, one after the other; the caller has put its own into `all` at its place.
  /// ceil(log2 n) rounds, and each byte is received once; a ring moves the same bytes in n - 1 rounds.
  Result<void> allgather(std::span<const std::size_t> bytes_of_each, void* all);

  /// `mine` of all members, in the order of the list.
  template <typename T>
  Result<std::vector<T>> allgather(const T& mine) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(pes_.size());
    all[static_cast<std::size_t>(me_)] = mine;
    const std::vector<std::size_t> bytes(pes_.size(), sizeof(T));
    if (auto ok = allgather(bytes, all.data()); !ok) {
      return ok.error();
    }
    return all;
  }

  /// Sends from[i] to member i and receives to[i] from it, with the length that the member sends. No overlap. Pairwise.
  Result<void> alltoall(std::span<const std::span<const std::byte>> from, std::span<const std::span<std::byte>> to);

 private:
  struct OpenBarrier {
    OpenBarrier(Network& network, std::uint64_t tag) : messages(network, tag) {}
    Messages messages;
    std::size_t step = 0;
  };
  struct Range {
    std::size_t offset, bytes;
  };

  /// Makes one call: `body(messages)` returns a Result<void>.
  template <typename Body>
  Result<void> run(const char* call, Limit limit, Body body) {
    if (auto ok = ready(call); !ok) {
      return ok;
    }
    Messages messages(network_, tag(false, ++calls_), deadline_after(limit ? limit : limit_));
    const Result<void> ok = body(messages);
    if (scratch_.size() > kMostKept) {
      scratch_ = {};
    }
    return ok ? ok : end(call, ok.error());
  }
  static Deadline deadline_after(Limit limit);
  [[nodiscard]] Result<void> ready(const char* call) const;
  [[nodiscard]] Error explained(const char* call, Error error) const;
  /// The group has failed.
  Error end(const char* call, const Error& error);
  [[nodiscard]] std::uint64_t tag(bool split, std::uint64_t number) const;
  /// The world number of the member at `distance` from this one, wrapping around the list.
  [[nodiscard]] int pe_at(int distance) const;

  /// With a power of two members, pairs exchange what they have in each round of a gather: as many messages as
  /// otherwise, but with fewer partners.
  [[nodiscard]] bool in_pairs() const { return std::has_single_bit(pes_.size()); }
  void begin_step(Messages& messages, const MessageStep& step) const;
  void next_step();
  Result<void> watch_barrier(std::chrono::nanoseconds limit);
  Result<void> broadcast_by_tree(Messages& messages, std::byte* data, std::size_t bytes, int root);
  Result<void> broadcast_by_chain(Messages& messages, std::byte* data, std::size_t bytes, int root,
                                  std::size_t segment);
  Result<void> gather(Messages& messages, std::span<const std::size_t> offsets, std::byte* all);
  Result<void> gather_in_pairs(Messages& messages, std::span<const std::size_t> offsets, std::byte* all);
  Result<void> gather_in_line(Messages& messages, std::span<const std::size_t> offsets, std::byte* all);
  /// The pieces of `count` members from `first` on, wrapping around the list: two ranges, either may be empty.
  [[nodiscard]] std::array<Range, 2> ranges(std::span<const std::size_t> offsets, int first, int count) const;
  /// Scratch memory, valid until the call ends or asks again.
  Result<std::byte*> scratch(std::size_t bytes);
  Result<void> exchange(Messages& messages, std::span<const std::span<const std::byte>> from,
                        std::span<const std::span<std::byte>> to);
  Result<void> reduce_by_doubling(Messages& messages, std::byte* data, std::size_t count, const Reduction& reduction);
  Result<void> reduce_by_shares(Messages& messages, std::byte* data, std::size_t count, const Reduction& reduction);
  Result<void> scan(Messages& messages, std::byte* data, std::size_t count, const Reduction& reduction);

  /// Up to this size scratch memory is kept between calls: new memory costs more than the copies to it.
  static constexpr std::size_t kMostKept = std::size_t{4} << 20;

  Network& network_;
  const std::vector<int> pes_;
  const int me_;
  const std::uint32_t team_;
  std::uint64_t calls_ = 0;
  std::uint64_t split_barriers_ = 0;
  Limit limit_;
  NodesChoice choice_{};
  std::vector<MessageStep> steps_;  // of a barrier
  ScratchBuffer scratch_;
  std::optional<OpenBarrier> open_;
  std::optional<Error> failed_;
};

}  // namespace shmem
