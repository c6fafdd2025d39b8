// SPDX-License-Identifier: Apache-2.0
// Waiting for signals of other ranks in symmetric memory.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "python/shmem_torch/group_calls.hpp"

namespace shmem_torch {

/// 0, or 1 while there is a signal that its receiver has not taken.
using SignalWord = std::atomic<std::uint32_t>;
static_assert(SignalWord::is_always_lock_free && sizeof(SignalWord) == sizeof(std::uint32_t));

/// A call that waits. `group` outlives it.
class SignalWait {
 public:
  /// `timeout` 0: none.
  SignalWait(const char* call, int channel, const GroupHandle& group, std::chrono::milliseconds timeout)
      : call_(call), channel_(channel), group_(group), timeout_(timeout), begin_(std::chrono::steady_clock::now()) {}
  [[nodiscard]] int channel() const { return channel_; }

  /// Changes the word once it is `from`. Throws std::runtime_error, which names the rank `peer` that should have set it
  /// so, after the timeout, or if that rank has ended.
  void change(SignalWord& word, std::uint32_t from, std::uint32_t to, int peer) const;

 private:
  [[noreturn]] void give_up(const std::string& why) const;

  const char* const call_;
  const int channel_;
  const GroupHandle& group_;
  const std::chrono::milliseconds timeout_;
  const std::chrono::steady_clock::time_point begin_;
};

}  // namespace shmem_torch
