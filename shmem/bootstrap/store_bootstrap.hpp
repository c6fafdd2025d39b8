// SPDX-License-Identifier: Apache-2.0
// The bootstrap of processes that share a key-value store and nothing else: no launcher, no connection of their own.
#pragma once

#include <functional>
#include <string>

#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/bootstrap/job_memory.hpp"

namespace shmem {

/// A store that all processes reach. Both calls return an Error of the store, such as a timeout.
struct KeyValueStore {
  std::function<Result<void>(const std::string& key, std::span<const std::byte> value)> set;
  /// Waits until the key exists, and fills all of `value`.
  std::function<Result<void>(const std::string& key, std::span<std::byte> value)> get;
};

/// Each step sets one key per PE: few steps, and none after the processes share memory, which then tells them of the
/// end. Thread safety: see Bootstrap.
class StoreBootstrap final : public Bootstrap {
 public:
  /// REQUIRES: a store of this job alone, with no keys yet.
  StoreBootstrap(KeyValueStore store, int rank, int size) : store_(std::move(store)), rank_(rank), size_(size) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  Result<std::vector<std::byte>> allgather(std::span<const std::byte> mine) override;

  /// From now on the end of the job is told there; the word is in memory that all PEs share, and outlives this object.
  void tell_end_in(JobEndWord& word) { end_ = &word; }
  int abort(int status, const std::string& reason) override;
  [[nodiscard]] std::optional<std::string> aborted() const override;
  [[nodiscard]] const std::atomic<std::uint32_t>* alarm() const override {
    return end_ != nullptr ? &end_->state : nullptr;
  }
  void leave() override {}

 private:
  const KeyValueStore store_;
  const int rank_;
  const int size_;
  std::uint32_t step_ = 0;
  JobEndWord* end_ = nullptr;
};

}  // namespace shmem
