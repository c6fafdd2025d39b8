// SPDX-License-Identifier: Apache-2.0
// What the devices of one IOMMU group share in a process: the kernel lets a group have one opener and one address
// space.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "driver/backend.hpp"
#include "driver/dma_memory.hpp"
#include "driver/process_hooks.hpp"
#include "driver/system_calls.hpp"

namespace gba {

/// Thread-safe, except for what open_device fills in before others know it.
class VfioContext {
 public:
  SystemFd iommu;                   // container, or iommufd
  SystemFd group;                   // empty with iommufd
  std::uint32_t address_space = 0;  // id of the IOAS with iommufd; 0: none yet

  /// One more device uses it. False: it has been released.
  bool enter();
  /// A device is lost or closed. `release` is called with the last one: the group must be free for its next opener.
  void leave(const std::function<void()>& release);
  [[nodiscard]] bool released() const { return released_.load(std::memory_order_acquire); }

  /// The addresses that all its devices share.
  Result<std::shared_ptr<IovaSpace>> iova_space(const DmaLimits& limits);

 private:
  ForkMutex mutex_;  // guards what follows
  unsigned devices_ = 0;
  std::atomic<bool> released_{false};
  std::shared_ptr<IovaSpace> iovas_;
};

/// The contexts of a process by IOMMU group. Not thread-safe.
class VfioContexts {
 public:
  /// That of `group`, or one that `opener` makes; with one more device.
  Result<std::shared_ptr<VfioContext>> find(const std::string& group,
                                            const std::function<Result<void>(VfioContext&)>& opener);

 private:
  std::map<std::string, std::weak_ptr<VfioContext>> contexts_;
};

}  // namespace gba
