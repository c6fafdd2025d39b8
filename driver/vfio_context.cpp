// SPDX-License-Identifier: Apache-2.0
#include "driver/vfio_context.hpp"

#include <mutex>

namespace gba {

bool VfioContext::enter() {
  const std::lock_guard lock(mutex_);
  if (released()) {
    return false;
  }
  ++devices_;
  return true;
}

void VfioContext::leave(const std::function<void()>& release) {
  const std::lock_guard lock(mutex_);
  if (--devices_ > 0) {
    return;
  }
  // Release: a thread that sees a call on its descriptors fail sees this too.
  released_.store(true, std::memory_order_release);
  release();
}

Result<std::shared_ptr<IovaSpace>> VfioContext::iova_space(const DmaLimits& limits) {
  const std::lock_guard lock(mutex_);
  if (iovas_ == nullptr) {
    auto made = make_iova_space(limits);
    if (!made) {
      return made;
    }
    iovas_ = *std::move(made);
  }
  return iovas_;
}

Result<std::shared_ptr<VfioContext>> VfioContexts::find(const std::string& group,
                                                        const std::function<Result<void>(VfioContext&)>& opener) {
  if (auto known = contexts_[group].lock(); known != nullptr && known->enter()) {
    return known;
  }
  auto context = std::make_shared<VfioContext>();
  if (auto opened = opener(*context); !opened) {
    return opened.error();
  }
  context->enter();
  contexts_[group] = context;
  return context;
}

}  // namespace gba
