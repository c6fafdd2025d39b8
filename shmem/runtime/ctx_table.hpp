// SPDX-License-Identifier: Apache-2.0
// The contexts of the program (OpenSHMEM 1.6, section 9.5).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "base/zero_array.hpp"
#include "shmem/layout/pe_set.hpp"
#include "shmem/layout/sync_view.hpp"

namespace shmem {

/// A context: a numbering of PEs, and which PEs it has operations on. On a node PEs reach each other by load and store,
/// which a fence of the thread orders and completes, whatever the context.
struct Ctx {
  TeamMap map;
  int team = 0;
  long options = 0;
  /// By numbers of the world; with room for all if the job is on several nodes, else for none. Operations of this
  /// context may be incomplete only on these PEs. Thread-safe, as the context.
  mutable PeSet used{};
};

/// Handles are numbers from 1. Thread-safe; find() takes no lock.
class CtxTable {
 public:
  static constexpr std::uintptr_t kMost = 4096;

  CtxTable() = default;
  CtxTable(const CtxTable&) = delete;
  CtxTable& operator=(const CtxTable&) = delete;
  ~CtxTable();

  /// The new handle; nothing if there are kMost.
  std::optional<std::uintptr_t> add(Ctx ctx);
  /// nullptr for an invalid handle. REQUIRES: no thread removes the context while it is used.
  [[nodiscard]] const Ctx* find(std::uintptr_t handle) const {
    // Acquire: pairs with add().
    return handle - 1 < kMost ? slots_[handle - 1].load(std::memory_order_acquire) : nullptr;
  }
  /// False for an invalid handle.
  bool remove(std::uintptr_t handle);
  /// Contexts that were created from a team end with it.
  void remove_all_of(int team);

 private:
  std::mutex mutex_;  // of add() and remove()
  base::ZeroArray<std::atomic<const Ctx*>> slots_{kMost};
};

}  // namespace shmem
