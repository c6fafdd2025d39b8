// SPDX-License-Identifier: Apache-2.0
// Collectives on memory that only its own process can reach, by messages between the members.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "shmem/collective/staged_call.hpp"
#include "shmem/net/process_group.hpp"

namespace shmem {

/// One member's side. Used by one thread at a time.
///
/// A call begins with an exchange in which each member hears from each: so they find out if their calls differ, and a
/// member that does not come is named by all. It takes small data along.
class MessageCollectives {
 public:
  /// Members are all PEs that `network` connects, which outlives this.
  MessageCollectives(Network& network, int me, int members);

  /// Collective. `timeout` 0: none. After an Error of arguments, which all members get, the next call can be made.
  /// After any other one has_failed().
  Result<void> run(const StagedCall& call, std::chrono::nanoseconds timeout);
  [[nodiscard]] bool has_failed() const { return members_.has_failed(); }

 private:
  /// What a member sends to each at first.
  struct Opening {
    static constexpr std::size_t kRoom = 224;
    CallHead head;
    std::array<std::byte, kRoom> data;
  };
  using Given = std::vector<std::span<const std::byte>>;  // to each member
  using Taken = std::vector<std::span<std::byte>>;        // from each

  [[nodiscard]] int size() const { return members_.size(); }
  [[nodiscard]] bool is_root(const StagedCall& call) const { return call.root == members_.me(); }
  [[nodiscard]] bool gives(const StagedCall& call) const;
  Result<void> open(const Opening& mine);
  void use_openings(const StagedCall& call) const;
  Result<void> make(const StagedCall& call);
  Result<void> move(const StagedCall& call);
  Result<void> reduce(const StagedCall& call);
  Result<void> reduce_scatter(const StagedCall& call);
  Result<void> alltoall(const StagedCall& call);
  template <typename Piece>
  void combine(const StagedCall& call, std::byte* to, std::size_t bytes, Piece piece_of) const;

  ProcessGroup members_;
  std::vector<Opening> openings_;  // of the running call
};

}  // namespace shmem
