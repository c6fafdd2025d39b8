// SPDX-License-Identifier: Apache-2.0
// Stores to memory that a client may take away at any time (by truncating its file): the store must not end the
// process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace fake_device {

/// Where a guarded store goes, and the whole mapping that it lies in.
struct GuardedWord {
  std::atomic<std::uint64_t>* word = nullptr;
  std::byte* mapping = nullptr;
  std::size_t size = 0;
};

/// Installs the process's SIGBUS handler; before the first guarded_store. A SIGBUS outside of a guarded store ends the
/// process as ever.
void install_sigbus_guard();

namespace detail {
/// What the handler needs to know: a signal handler has no arguments of ours, so this is the one place for it.
struct GuardState {
  std::byte* volatile mapping = nullptr;
  volatile std::size_t size = 0;
  volatile bool faulted = false;
};
extern constinit thread_local GuardState guard_state;
}  // namespace detail

/// Stores with release order; partner: the member's acquire load of its flag. False: the memory is gone. The whole
/// mapping then is private zero pages, and whoever owns it should be dropped. Any thread.
inline bool guarded_store(const GuardedWord& target, std::uint64_t value) {
  detail::GuardState& state = detail::guard_state;
  state.mapping = target.mapping;
  state.size = target.size;
  // The handler runs on this thread, in the middle of the store: only the compiler could reorder.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  target.word->store(value, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  state.size = 0;
  if (state.faulted) [[unlikely]] {
    state.faulted = false;
    return false;
  }
  return true;
}

}  // namespace fake_device
