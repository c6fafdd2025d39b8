// SPDX-License-Identifier: Apache-2.0
// The bootstrap of processes that share a key-value store and nothing else: no launcher, no connection of their own.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/kernel.hpp"
#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/bootstrap/job_memory.hpp"

namespace shmem {

/// A store that all processes reach. Both calls return an Error of the store, such as a timeout.
struct KeyValueStore {
  std::function<Result<void>(const std::string& key, std::span<const std::byte> value)> set;
  /// Waits until the key exists, and fills all of `value`. EAGAIN: it does not exist yet; to be called again.
  std::function<Result<void>(const std::string& key, std::span<std::byte> value)> get;
};

/// At the begin of each value. Some stores keep no empty value.
struct StoreSender {
  base::Machine machine{};
  std::uint64_t space = 0;  // the PID namespace
  std::uint64_t start = 0;  // base::start_of(pid)
  std::int32_t pid = 0;     // 0: nothing has come of it
  std::int32_t reserved = 0;
};

/// Each step sets one key per PE, and a PE that gives up because of a dead one sets another: few steps, and none after
/// the processes share memory, which then tells them of the end. Thread safety: see Bootstrap.
class StoreBootstrap final : public Bootstrap {
 public:
  /// REQUIRES: a store of this job alone, with no keys yet.
  StoreBootstrap(KeyValueStore store, int rank, int size);

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  Result<std::vector<std::byte>> allgather(std::span<const std::byte> mine) override;

  /// From now on the end of the job is told there; the word is in memory that all PEs share, and outlives this object.
  void tell_end_in(JobEndWord& word) { end_ = &word; }
  /// Needs no memory. One thread at a time.
  int abort(int status, const std::string& reason) override;
  [[nodiscard]] std::optional<std::string> aborted() const override;
  [[nodiscard]] const std::atomic<std::uint32_t>* alarm() const override {
    return end_ != nullptr ? &end_->state : nullptr;
  }
  void leave() override {}

 private:
  [[nodiscard]] std::string key(int pe) const;
  Result<void> get(int pe, std::vector<std::byte>& value);
  /// One that has ended, of those that this process can see.
  [[nodiscard]] std::optional<int> ended_pe() const;
  struct Loss {
    std::int32_t pe = 0;
    std::int32_t pid = 0;
  };
  Loss first_loss(int ended);
  [[nodiscard]] bool looks_now();
  /// `pe`, and others whose value is not there.
  [[nodiscard]] std::string missing_from(int pe, std::vector<std::byte>& value) const;

  const KeyValueStore store_;
  const int rank_;
  const int size_;
  std::uint32_t step_ = 0;
  bool polls_ = false;  // the store says when a key does not exist yet, instead of waiting
  StoreSender self_;
  std::vector<StoreSender> senders_;
  Clock::time_point next_look_{};
  JobEndWord* end_ = nullptr;
  JobEnd told_{};  // has room for the reason beforehand
};

}  // namespace shmem
