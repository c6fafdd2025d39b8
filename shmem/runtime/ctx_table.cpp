// SPDX-License-Identifier: Apache-2.0
#include "shmem/runtime/ctx_table.hpp"

#include <utility>

namespace shmem {

CtxTable::~CtxTable() {
  for (std::uintptr_t handle = 1; handle <= kMost; ++handle) {
    remove(handle);
  }
}

std::optional<std::uintptr_t> CtxTable::add(Ctx ctx) {
  const std::scoped_lock lock(mutex_);
  for (std::uintptr_t i = 0; i < kMost; ++i) {
    if (slots_[i].load(std::memory_order_relaxed) == nullptr) {
      // Release: pairs with find().
      slots_[i].store(std::make_unique<const Ctx>(std::move(ctx)).release(), std::memory_order_release);
      return i + 1;
    }
  }
  return std::nullopt;
}

bool CtxTable::remove(std::uintptr_t handle) {
  const std::scoped_lock lock(mutex_);
  if (handle - 1 >= kMost) {
    return false;
  }
  const std::unique_ptr<const Ctx> ctx(slots_[handle - 1].load(std::memory_order_relaxed));
  if (ctx == nullptr) {
    return false;  // nothing is written to what was never used
  }
  slots_[handle - 1].store(nullptr, std::memory_order_relaxed);
  return true;
}

void CtxTable::remove_all_of(int team) {
  const std::scoped_lock lock(mutex_);  // so that no thread removes a context that is read here
  for (std::uintptr_t i = 0; i < kMost; ++i) {
    const Ctx* ctx = slots_[i].load(std::memory_order_relaxed);
    if (ctx != nullptr && ctx->team == team) {
      const std::unique_ptr<const Ctx> removed(slots_[i].exchange(nullptr, std::memory_order_relaxed));
    }
  }
}

}  // namespace shmem
