// SPDX-License-Identifier: Apache-2.0
// How PEs send blocks to PEs of their node whose caches are private to their processes, and what they tell the others
// about a failure.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/operator/operator_team.hpp"

namespace shmem::kv {

/// Blocks on their way to private memory. The kernel copies them, many pieces in one system call. After an Error
/// nothing more is sent, and finish() returns it. Used by one thread.
class PrivatePuts {
 public:
  explicit PrivatePuts(OperatorTeam& team) : team_(&team) {}

  /// add() takes no memory then.
  void reserve() { pieces_.reserve(OperatorTeam::kMostPieces); }

  /// As OperatorTeam::write_private(). `from` is not changed until finish(). Pieces that are adjacent here stay apart:
  /// K and V may be registered separately, and then are not adjacent there.
  void add(int pe, std::byte* to, const std::byte* from, std::size_t size) {
    if (pe != pe_ || pieces_.size() == OperatorTeam::kMostPieces) {
      write();
      if (!outcome_) {
        return;
      }
      pe_ = pe;
    }
    pieces_.push_back({to, from, size});
  }

  /// Returns when everything added so far has been copied; or the first Error.
  const Result<void>& finish() {
    write();
    return outcome_;
  }
  /// The PE that could not be written, if finish() returns an Error.
  [[nodiscard]] int failed_pe() const { return pe_; }

 private:
  void write() {
    if (outcome_ && !pieces_.empty()) {
      outcome_ = team_->write_private(pe_, pieces_);
    }
    pieces_.clear();
  }

  OperatorTeam* team_;
  int pe_ = -1;
  std::vector<OperatorTeam::Piece> pieces_;
  Result<void> outcome_{};
};

/// What a PE tells the others of its node about the copy that has failed. One word, so that all see all of it.
struct FailedCopy {
  /// The number of the sync within the call from which on it counts: a PE may read the word earlier, and must not end
  /// its call before the others do.
  std::uint32_t sync = 0;
  int pe = 0;  // the destination
  std::errc error{};

  [[nodiscard]] std::uint64_t word() const {
    return std::uint64_t{sync} << 32 | std::uint64_t{static_cast<std::uint16_t>(pe)} << 16 |
           static_cast<std::uint16_t>(error);
  }
  /// 0: no copy has failed.
  static FailedCopy of(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint16_t>(word >> 16),
            std::errc{static_cast<std::uint16_t>(word)}};
  }
};

}  // namespace shmem::kv
