// SPDX-License-Identifier: Apache-2.0
// Who sends to whom in one shuffle: the same table on all PEs. Errors say what is wrong; the caller adds where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "shmem/result.hpp"

namespace shmem::kv {

/// What a row's second number says; anything but kSend receives.
constexpr std::int64_t kSend = 0;
constexpr std::int64_t kReceive = 1;

enum class Role { kIdle, kSender, kReceiver };

/// A view of int64[2 * pes]: row p = {the PE that p is paired with, operation of p}. Plain data, owned by the caller.
class PairTable {
 public:
  /// REQUIRES: `numbers` is as long as 2 * pes.
  PairTable(const std::int64_t* numbers, int pes) : numbers_(numbers, 2 * static_cast<std::size_t>(pes)) {}

  [[nodiscard]] int pes() const { return static_cast<int>(numbers_.size() / 2); }
  [[nodiscard]] std::int64_t peer(int pe) const { return numbers_[2 * static_cast<std::size_t>(pe)]; }
  [[nodiscard]] std::int64_t operation(int pe) const { return numbers_[2 * static_cast<std::size_t>(pe) + 1]; }
  [[nodiscard]] bool in_range(std::int64_t pe) const { return pe >= 0 && pe < pes(); }

  /// All rows: peers are PEs and are paired with each other, and of two at most one sends. A PE may be paired with
  /// itself, idle. The text of an Error names the rows; all PEs with this table get the same one.
  [[nodiscard]] Result<void> check() const;

  /// Idle if neither of the two sends. REQUIRES: check().
  [[nodiscard]] Role role(int pe) const;
  /// REQUIRES: check().
  [[nodiscard]] int senders() const;

 private:
  std::span<const std::int64_t> numbers_;
};

}  // namespace shmem::kv
