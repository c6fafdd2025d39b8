// SPDX-License-Identifier: Apache-2.0
// Plans in pairs. Errors say what is wrong; the caller adds where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kv/operator/plan.hpp"
#include "shmem/result.hpp"

namespace shmem::kv {

/// The second number of a row; anything but kSend receives.
constexpr std::int64_t kSend = 0;
constexpr std::int64_t kReceive = 1;

enum class Role { kIdle, kSender, kReceiver };

/// A view of int64[2 * pes], the same on all PEs: row p = {the PE that p is paired with, operation of p}.
class PairTable {
 public:
  /// REQUIRES: `numbers` is as long as 2 * pes.
  PairTable(const std::int64_t* numbers, int pes) : numbers_(numbers, 2 * static_cast<std::size_t>(pes)) {}

  [[nodiscard]] int pes() const { return static_cast<int>(numbers_.size() / 2); }
  [[nodiscard]] std::int64_t peer(int pe) const { return numbers_[2 * static_cast<std::size_t>(pe)]; }
  [[nodiscard]] std::int64_t operation(int pe) const { return numbers_[2 * static_cast<std::size_t>(pe) + 1]; }
  [[nodiscard]] bool in_range(std::int64_t pe) const { return pe >= 0 && pe < pes(); }

  /// All rows: peers are PEs and are paired with each other, and at most one of a pair sends. A PE that is paired with
  /// itself is idle. Errors name the rows, and are the same on all PEs.
  [[nodiscard]] Result<void> check() const;

  /// Idle if neither of the pair sends. REQUIRES: check().
  [[nodiscard]] Role role(int pe) const;
  /// REQUIRES: check().
  [[nodiscard]] int senders() const;

 private:
  std::span<const std::int64_t> numbers_;
};

/// A pair table and this PE's block tables, copied. Plain data; any thread may read it.
class PairPlan {
 public:
  /// `source` and `destination` count only if `me` sends. Error: no such PE. Other errors are kept for own(), because
  /// the partner must be told about them.
  static Result<PairPlan> create(std::span<const std::int64_t> table, int me, std::span<const std::int64_t> source,
                                 std::span<const std::int64_t> destination);

  [[nodiscard]] PairTable table() const { return {numbers_.data(), static_cast<int>(numbers_.size() / 2)}; }
  [[nodiscard]] int me() const { return me_; }
  /// What this PE sends, or what is wrong with pair table or block tables.
  [[nodiscard]] const Result<MovePlan>& own() const { return own_; }
  /// Of the pair table.
  [[nodiscard]] std::uint64_t digest() const { return digest_; }

 private:
  PairPlan(std::span<const std::int64_t> table, int me) : numbers_(table.begin(), table.end()), me_(me) {}
  [[nodiscard]] Result<MovePlan> read(std::span<const std::int64_t> source,
                                      std::span<const std::int64_t> destination) const;

  std::vector<std::int64_t> numbers_;
  int me_;
  Result<MovePlan> own_{};
  std::uint64_t digest_ = 0;
};

}  // namespace shmem::kv
