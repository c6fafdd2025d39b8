// SPDX-License-Identifier: Apache-2.0
// The fences of the driver, named by their use. Everything else is ordered by acquire and release on the object itself.
#pragma once

#include <atomic>

namespace gba::ordering {

/// Between stores to ordinary memory and the doorbell store that tells others of them. A release store is enough where
/// the doorbell is ordinary memory or stores are never reordered (x86); a weakly ordered processor needs a barrier that
/// covers device memory too.
inline void data_before_doorbell() {
#if defined(__aarch64__)
  asm volatile("dmb oshst" ::: "memory");
#endif
}

/// Between the store of a doorbell and the load of WAKEUP: neither may pass the other, or the device sleeps on a
/// doorbell that nobody kicks it for. Pairs with the device's fence between its store of WAKEUP and its last scan
/// (uapi rule 14).
inline void doorbell_before_wakeup() {
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer does not understand a fence. A locked read-modify-write is one on x86, where it runs.
  static std::atomic<unsigned> fence{0};
  fence.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace gba::ordering
