// SPDX-License-Identifier: Apache-2.0
// Pulls in the background.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/helper_thread.hpp"
#include "kv/exchange/local_peer.hpp"
#include "shmem/result.hpp"

namespace shmem::exchange {

/// A pull and its end. Any thread.
class Transfer {
 public:
  Transfer(std::vector<Block> blocks, std::vector<void*> destinations, std::int32_t* statuses)
      : blocks_(std::move(blocks)), destinations_(std::move(destinations)), statuses_(statuses) {}

  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }
  [[nodiscard]] void* const* destinations() const { return destinations_.data(); }
  [[nodiscard]] std::int32_t* statuses() const { return statuses_; }

  /// The thread that executes it says when. False: it was cancelled.
  bool begin();
  void end(Result<void> outcome);

  /// Over, unless it has begun.
  void cancel();
  /// Cancels it, and returns when it is over.
  void finish();
  /// The outcome, or nothing if it is not over by `limit`.
  std::optional<Result<void>> wait(std::chrono::nanoseconds limit);

 private:
  enum class State { kWaiting, kRunning, kOver };

  const std::vector<Block> blocks_;
  const std::vector<void*> destinations_;
  std::int32_t* const statuses_;
  std::mutex mutex_;  // for the rest
  std::condition_variable over_;
  State state_ = State::kWaiting;
  Result<void> outcome_;
};

using TransferPointer = std::shared_ptr<Transfer>;

/// A thread that executes transfers in their order; started with the first. Thread-safe.
class Transfers {
 public:
  using Execute = std::function<Result<void>(const Transfer&)>;

  /// `most`: that wait or run at a time.
  Transfers(std::size_t most, Execute execute) : most_(most), execute_(std::move(execute)) {}
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;
  /// Cancels those that wait.
  ~Transfers();

  /// Error: EAGAIN there are as many as there may be, or no thread.
  Result<void> add(TransferPointer transfer);

 private:
  void run();
  Result<void> execute(const Transfer& transfer) const;

  const std::size_t most_;
  const Execute execute_;
  std::mutex mutex_;  // for the next three
  std::condition_variable changed_;
  std::deque<TransferPointer> queue_;  // the first one runs
  bool stop_ = false;
  base::HelperThread thread_;
};

}  // namespace shmem::exchange
