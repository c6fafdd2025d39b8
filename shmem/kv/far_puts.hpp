// SPDX-License-Identifier: Apache-2.0
// Pieces of blocks on their way to other nodes.
#pragma once

#include "shmem/kv/far.hpp"

namespace shmem::kv {

/// Many puts are under way at once, and what goes on where the one before ends is one put. After an Error nothing is
/// sent any more; finish() tells. Used by one thread.
class FarPuts {
 public:
  FarPuts() = default;
  explicit FarPuts(Far* far) : far_(far) {}

  /// REQUIRES: there are far PEs, and `pe` is one. `from` is not touched until finish().
  void add(int pe, std::byte* to, const std::byte* from, std::size_t size) {
    if (waiting_.size != 0 && waiting_.pe == pe && waiting_.to + waiting_.size == to &&
        waiting_.from + waiting_.size == from) {
      waiting_.size += size;
      return;
    }
    send();
    waiting_ = {pe, to, from, size};
  }

  /// All that was added so far is where it belongs, and has been so since; or the first Error.
  const Result<void>& finish() {
    if (far_ != nullptr) {
      send();
      drain();
    }
    return outcome_;
  }

 private:
  /// What UCX keeps of each is little, but not nothing; and a quiet after so many costs nothing beside them.
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  static constexpr std::size_t kMostPuts = 4096;

  struct Put {
    int pe = 0;
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::size_t size = 0;  // 0: none
  };

  void send() {
    if (waiting_.size == 0 || !outcome_) {
      return;
    }
    outcome_ = far_->start_put(waiting_.to, waiting_.pe, waiting_.from, waiting_.size);
    bytes_ += waiting_.size;
    ++puts_;
    waiting_.size = 0;
    if (bytes_ >= kMostBytes || puts_ >= kMostPuts) {
      drain();
    }
  }

  /// Also after an Error: what has been begun must not be read from memory that is somebody else's again.
  void drain() {
    if (puts_ == 0) {
      return;
    }
    bytes_ = puts_ = 0;
    const auto done = far_->quiet();
    if (outcome_ && !done) {
      outcome_ = done;
    }
  }

  Far* far_ = nullptr;
  Put waiting_{};
  std::size_t bytes_ = 0, puts_ = 0;  // since the last quiet
  Result<void> outcome_{};
};

}  // namespace shmem::kv
