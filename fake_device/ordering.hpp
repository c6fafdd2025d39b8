// SPDX-License-Identifier: Apache-2.0
// The device's one fence. Everything else is ordered by acquire and release on the object itself.
#pragma once

#include <atomic>

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

}  // namespace fake_device
