// SPDX-License-Identifier: Apache-2.0
// The plan that a pair table and this PE's block tables are.
#pragma once

#include <vector>

#include "shmem/kv/pair_table.hpp"
#include "shmem/kv/plan.hpp"

namespace shmem::kv {

/// Copies of the tables. Plain data; any thread may read it.
class TablePlan {
 public:
  /// `source` and `destination` count only if `me` sends. Error: no such PE. What else is wrong is known to check(), as
  /// the partner is to hear of it.
  static Result<TablePlan> create(std::span<const std::int64_t> table, int me, std::span<const std::int64_t> source,
                                  std::span<const std::int64_t> destination);

  [[nodiscard]] PairTable table() const { return {numbers_.data(), static_cast<int>(numbers_.size() / 2)}; }
  [[nodiscard]] int me() const { return me_; }
  /// What this PE sends, or what is wrong with table or blocks.
  [[nodiscard]] const Result<MovePlan>& own() const { return own_; }
  /// The same for the same table.
  [[nodiscard]] std::uint64_t digest() const { return digest_; }

 private:
  TablePlan(std::span<const std::int64_t> table, int me) : numbers_(table.begin(), table.end()), me_(me) {}
  [[nodiscard]] Result<MovePlan> read(std::span<const std::int64_t> source,
                                      std::span<const std::int64_t> destination) const;

  std::vector<std::int64_t> numbers_;
  int me_;
  Result<MovePlan> own_{};
  std::uint64_t digest_ = 0;
};

}  // namespace shmem::kv
