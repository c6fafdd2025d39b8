// SPDX-License-Identifier: Apache-2.0
// The calls of a group with members on several nodes: what a member gives goes to its stage, and is moved and combined
// there by the collectives of teams (on_nodes.hpp).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "shmem/collective/members.hpp"
#include "shmem/collective/staged_call.hpp"
#include "shmem/team/spanning_team.hpp"

namespace shmem {

/// Where each member of a node has room in its heap.
struct Stages {
  std::size_t offset = 0;
  std::size_t half = 0;   // bytes; two halves follow each other, so that one can be filled while others read the other
  std::size_t board = 0;  // of StagedOnNodes, on several nodes
};

/// Refers to what writes bytes to a place, without an allocation. For arguments: it must not outlive that.
class Writer {
 public:
  template <typename Write>
  Writer(const Write& write)  // NOLINT(google-explicit-constructor,hicpp-explicit-conversions)
      : write_(&write), call_([](const void* object, std::byte* to) { (*static_cast<const Write*>(object))(to); }) {}
  void operator()(std::byte* to) const { call_(write_, to); }

 private:
  const void* write_;
  void (*call_)(const void* object, std::byte* to);
};

/// One member's side. Used by one thread at a time.
class StagedOnNodes {
 public:
  /// Data that goes along when the members meet.
  static constexpr std::size_t kRoom = 224;
  /// Bytes of a board: what all members say at two meetings.
  static std::size_t board_size(int members) { return 2 * static_cast<std::size_t>(members) * sizeof(Opening); }

  /// `job` has the limit of waits, which this lengthens where a member waits for one that waits itself.
  StagedOnNodes(Job& job, SpanningTeam& team, const Stages& stages);

  /// Limits each wait for other nodes; 0: no limit.
  void set_limit(std::chrono::nanoseconds limit);
  /// Collective: the members of a node tell their leader, the leaders each other, and each its node. `write(to)` stores
  /// `size` bytes, a head and up to kRoom of data; `heads`, with the data behind
  /// them, are valid until the next but one meeting.
  Result<void> meet(std::size_t size, Writer write, std::span<const CallHead*> heads);
  /// After a meeting at which all members have said the same, and have not given the data.
  Result<void> make(const StagedCall& call, const TypedReduction& reduction);
  [[nodiscard]] bool has_failed() const { return failed_; }
  [[nodiscard]] std::size_t staged_bytes() const { return staged_bytes_; }

 private:
  struct alignas(64) Opening {
    std::array<std::byte, sizeof(CallHead) + kRoom> bytes;
  };
  using Given = std::vector<std::span<const std::byte>>;  // to each member
  using Taken = std::vector<std::span<std::byte>>;        // from each

  template <typename Made>
  Made checked(Made made);
  [[nodiscard]] Opening* board() const;
  [[nodiscard]] Members members() const;
  Result<void> exchange_openings(Opening* all);
  Result<void> make_alone(const StagedCall& call, const TypedReduction& typed);
  Result<void> reduce_piece(const StagedCall& call, const TypedReduction& typed, std::size_t offset, std::size_t size);
  Result<void> scatter_piece(const StagedCall& call, const TypedReduction& typed, std::size_t offset, std::size_t size);
  Result<void> make_piece(const StagedCall& call, const TypedReduction& reduction, std::size_t offset,
                          std::size_t size);
  Result<void> move(const StagedCall& call);
  Result<void> alltoall(const StagedCall& call);
  Result<void> send_all(Given& given, Taken& taken, std::size_t longest);
  Result<void> move_here(Given& given, Taken& taken, std::size_t longest);

  Job& job_;
  SpanningTeam& team_;
  std::byte* const stage_;
  const std::size_t room_;
  const std::size_t board_;
  std::vector<std::size_t> places_;  // of each member, if those of a node follow each other
  std::uint64_t meetings_ = 0;
  std::size_t staged_bytes_ = 0;
  bool failed_ = false;
};

}  // namespace shmem
