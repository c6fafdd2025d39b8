// SPDX-License-Identifier: Apache-2.0
// Waiting for signals of other ranks in symmetric memory.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "python/shmem_torch/group_calls.hpp"

namespace shmem_torch {

/// 0, or 1 while there is a signal that its receiver has not taken.
using SignalWord = std::atomic<std::uint32_t>;
static_assert(SignalWord::is_always_lock_free && sizeof(SignalWord) == sizeof(std::uint32_t));

/// A call that waits. `group` outlives it.
class SignalWait {
 public:
  /// `call` and `number` are for messages: "SymmetricMemory.barrier(channel ", 3. `timeout` 0: none.
  SignalWait(const char* call, int number, const GroupHandle& group, std::chrono::milliseconds timeout)
      : call_(call), number_(number), group_(group), timeout_(timeout), begin_(std::chrono::steady_clock::now()) {}
  [[nodiscard]] int number() const { return number_; }

  /// Waits until `done`, which is cheap. Throws std::runtime_error, which names the rank `peer` that is waited for,
  /// after the timeout, or if that rank has ended.
  void until(const std::function<bool()>& done, int peer) const;
  /// Why a wait would end now without what it is for: the timeout, or the end of that rank or of the group. "": it goes
  /// on.
  [[nodiscard]] std::string problem(int peer) const;
  /// Changes the word once it is `from`, to which the rank `peer` should have set it.
  void change(SignalWord& word, std::uint32_t from, std::uint32_t to, int peer) const;

 private:
  [[nodiscard]] bool is_late(std::chrono::steady_clock::time_point now) const;
  [[nodiscard]] std::string text(const std::string& why) const;

  const char* const call_;
  const int number_;
  const GroupHandle& group_;
  const std::chrono::milliseconds timeout_;
  const std::chrono::steady_clock::time_point begin_;
};

}  // namespace shmem_torch
