// SPDX-License-Identifier: Apache-2.0
// fence, quiet and progress: at most one instruction on one node, and the network's on several nodes.
#pragma once

#include "shmem/memory/ordering.hpp"
#include "shmem/runtime/runtime.hpp"

namespace shmem::api {

// Only in a job on several nodes: api/remote.cpp.
void remote_fence(PeChoice pes = {});
void remote_quiet(PeChoice pes = {});
void remote_progress();

/// Orders earlier puts before later puts to the same PE.
inline void fence() {
  shmem::fence();
  if (Runtime::reach().several_nodes) [[unlikely]] {
    remote_fence();
  }
}

/// Completes earlier puts and everything else that waits for a quiet.
inline void quiet() {
  shmem::quiet();
  if (Runtime::reach().several_nodes) [[unlikely]] {
    remote_quiet();
  }
}

/// As quiet(), of a call that then waits for all PEs of the job. On one node nothing is left to complete: earlier
/// stores are visible before the one by which this PE arrives, and no PE goes on before it sees that of each.
inline void quiet_before_sync_of_all() {
  if (Runtime::reach().several_nodes) [[unlikely]] {
    quiet();
  } else {
    shmem::fence();
  }
}

/// fence() and quiet() for the operations of a context. Waits for no PE that it has no operations on.
void fence(const Runtime& runtime, const Ctx& ctx);
void quiet(const Runtime& runtime, const Ctx& ctx);

/// For calls that test without waiting: programs repeat them until they see a change, which may come over the network.
inline void progress() {
  if (Runtime::reach().several_nodes) [[unlikely]] {
    remote_progress();
  }
}

}  // namespace shmem::api
