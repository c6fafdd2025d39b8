// SPDX-License-Identifier: Apache-2.0
// Memory that the device shares with its clients: BARs, stores that survive a client taking its memory away, the fence.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/fd.hpp"
#include "base/mapping.hpp"
#include "fake_device/result.hpp"

namespace fake_device {

/// Between setting WAKEUP and the last scan: uapi rule 14. The store of WAKEUP must be visible before the slots are
/// read; partner: the client's fence between its doorbell and its read of WAKEUP. TSan does not know fences; a
/// read-modify-write stands in for it there, and is a full barrier on the machines that TSan runs on.
inline void fence_before_last_scan() {
#if defined(__SANITIZE_THREAD__)
  std::atomic<int> barrier{0};
  barrier.exchange(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

/// A zeroed memfd of fixed size, mapped. It is sealed, so a client that gets its descriptor can neither shrink it
/// (which would be a SIGBUS here) nor grow it. The memory is shared with other processes: atomics only.
class SharedPages {
 public:
  static Result<SharedPages> create(const char* name, std::size_t size);

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] std::size_t size() const { return pages_.size(); }
  [[nodiscard]] std::byte* data() const { return pages_.data(); }

  /// False: a client that gets the descriptor can punch holes, and accesses here wait as long as it is at it. To forbid
  /// that takes CAP_LINUX_IMMUTABLE.
  [[nodiscard]] bool is_protected() const { return protected_; }

  /// REQUIRES: offset is a multiple of sizeof(T), and offset + sizeof(T) <= size().
  template <typename T>
  [[nodiscard]] std::atomic<T>* at(std::size_t offset) const {
    static_assert(sizeof(std::atomic<T>) == sizeof(T) && std::atomic<T>::is_always_lock_free);
    return reinterpret_cast<std::atomic<T>*>(pages_.data() + offset);
  }

 private:
  SharedPages(base::UniqueFd fd, base::Mapping pages, bool is_protected)
      : fd_(std::move(fd)), pages_(std::move(pages)), protected_(is_protected) {}

  base::UniqueFd fd_;
  base::Mapping pages_;
  bool protected_;
};

/// The largest page, of hugetlbfs, that a guarded store may go to.
inline constexpr std::size_t kLargestPage = std::size_t{1} << 30;

/// Where a guarded store goes, and the page that it lies in.
struct GuardedWord {
  std::atomic<std::uint64_t>* word = nullptr;
  std::byte* page = nullptr;
  std::size_t size = 0;  // 0: memory that clients cannot take away
};

/// Installs the process's SIGBUS handler; before the first guarded_store. A SIGBUS outside of a guarded store ends the
/// process as ever.
void install_sigbus_guard();

namespace detail {
/// What the handler needs to know: a signal handler has no arguments of ours, so this is the one place for it.
struct GuardState {
  std::byte* volatile page = nullptr;
  volatile std::size_t size = 0;
  volatile bool faulted = false;
};
extern constinit thread_local GuardState guard_state;
}  // namespace detail

/// Stores with release order; partner: the member's acquire load of its flag. False: the memory is gone. The page then
/// is one of this process, and the client that owned it should be dropped. Any thread.
inline bool guarded_store(const GuardedWord& target, std::uint64_t value) {
  detail::GuardState& state = detail::guard_state;
  state.page = target.page;
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
