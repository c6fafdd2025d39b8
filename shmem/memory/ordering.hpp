// SPDX-License-Identifier: Apache-2.0
// Fences named by their use.
#pragma once

#include <atomic>

namespace shmem {

// ThreadSanitizer does not model fences (and g++ refuses them with it), but it sees only one process, and these fences
// order stores for other processes.
#if defined(__SANITIZE_THREAD__)
inline void fence() {}
inline void quiet() {}
inline void after_reads() {}
#else
/// Makes earlier stores visible before later stores. Streaming copies bring their own sfence.
inline void fence() {
  std::atomic_thread_fence(std::memory_order_release);
}

/// Makes earlier stores visible before any later access.
inline void quiet() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

/// Completes earlier loads, also those that are no atomics, before any later access: for a check that what was copied
/// had not changed. Pairs with quiet() of the writer, between its mark and its first change.
inline void after_reads() {
  std::atomic_thread_fence(std::memory_order_acquire);
}
#endif

}  // namespace shmem
