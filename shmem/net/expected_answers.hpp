// SPDX-License-Identifier: Apache-2.0
// The answers that a PE's requests still wait for, by any transport.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <utility>

#include "shmem/net/record_pool.hpp"
#include "shmem/net/requests.hpp"

namespace shmem {

/// Takes any bytes as an answer: writes only to memory that is expected to be written. Thread-safe.
class ExpectedAnswers {
 public:
  /// `value` and `refused` belong to the waiting thread once `done`, until it calls forget().
  struct Expected {
    std::uint64_t number = 0;  // for the request
    int pe = 0;
    std::uint64_t value = 0;
    bool refused = false;
    std::atomic<bool> done{false};

   private:
    friend class ExpectedAnswers;
    bool used = false;
    bool waited_for = false;
    std::byte* to = nullptr;
    std::uint64_t bytes = 0;
    std::uint64_t left = 0;  // of them
  };

  /// `job`: JobAddresses::job. `lose` is told the PE that has refused a request, and why, or whose answer does not
  /// fit the request (kNone), before that request is done.
  ExpectedAnswers(std::uint64_t job, std::function<void(int, Refusal)> lose) : job_(job), lose_(std::move(lose)) {}

  /// A request to `pe`, whose answer is the bytes for `to`, or a value if `to` is empty. If `waited_for`, it stays
  /// until the caller calls forget(), otherwise until the answer is complete.
  Expected& expect(int pe, std::span<std::byte> to, bool waited_for);
  /// Late answers are dropped.
  void forget(Expected& expected);
  /// Forgets all requests to `pe` that no thread waits for. False if there are none.
  bool forget_started(int pe);

  void take(std::span<const std::byte> header, std::span<const std::byte> bytes);

 private:
  // REQUIRES: mutex_ is held.
  Expected* find(std::uint64_t number);
  void release(Expected& expected);

  const std::uint64_t job_;
  const std::function<void(int, Refusal)> lose_;
  std::mutex mutex_;
  RecordPool<Expected> expected_;
};

}  // namespace shmem
