// SPDX-License-Identifier: Apache-2.0
// Fences named by their use.
#pragma once

#include <atomic>

namespace shmem {

// ThreadSanitizer does not model fences (and g++ refuses them with it), but it also sees one process only, and these
// order what one process does for others.
#if defined(__SANITIZE_THREAD__)
inline void fence() {}
inline void quiet() {}
#else
/// Stores before it are visible before stores after it. Streaming copies bring their own sfence.
inline void fence() {
  std::atomic_thread_fence(std::memory_order_release);
}

/// Stores before it are visible before anything after it is looked at.
inline void quiet() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
}
#endif

}  // namespace shmem
