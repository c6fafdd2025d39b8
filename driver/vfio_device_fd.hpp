// SPDX-License-Identifier: Apache-2.0
// A device behind the kernel's VFIO: the part that is the same for both ways of opening it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "driver/backend.hpp"
#include "driver/dma_memory.hpp"
#include "driver/pci.hpp"
#include "driver/process_hooks.hpp"
#include "driver/system_calls.hpp"
#include "uapi/gba_device.h"

namespace gba {

/// What a user of virtual functions must know if vfio-pci has their physical function: a UUID.
struct VfToken {
  std::string text = {};  // "" if there is none
  std::array<std::uint8_t, 16> bytes{};
  friend bool operator==(const VfToken&, const VfToken&) = default;
};

/// Of `setting`: a UUID, or the path of a file that begins with one. Null: the file /etc/gba/vf_token, if there is one
/// that this user may read. Fails with invalid_argument.
Result<VfToken> vf_token(const char* setting);

/// The files that lead to a device.
struct VfioNodes {
  std::string device;   // "/dev/vfio/12" or "/dev/vfio/devices/vfio0"
  std::string iommu;    // "/dev/vfio/vfio" or "/dev/iommu"
  std::string address;  // of the PCI function: "0000:3b:00.0"
  VfToken token = {};   // if the kernel wants one for it and there is one
};

/// Regions, interrupts, reset and loss. The two ways of opening the device differ in how they map memory for it.
class VfioDeviceFd : public Backend {
 public:
  [[nodiscard]] std::string path() const override { return address_; }
  [[nodiscard]] int numa_node() const override { return numa_node_; }
  [[nodiscard]] bool behind_iommu() const override { return true; }

  Result<RegionInfo> region_info(std::uint32_t region) override;
  Result<void> read(std::uint32_t region, std::uint64_t offset, std::span<std::byte> data) override;
  Result<void> write(std::uint32_t region, std::uint64_t offset, std::span<const std::byte> data) override;
  Result<void> post(std::uint32_t region, std::uint64_t offset, std::span<const std::byte> data) override {
    return write(region, offset, data);
  }
  Result<base::Mapping> map(std::uint32_t region) override;
  /// None: a store to the register costs less than a write to an eventfd.
  Result<base::UniqueFd> doorbell_eventfd(std::uint32_t /*region*/, std::uint64_t /*offset*/) override {
    return base::UniqueFd{};
  }

  Result<std::uint32_t> irq_count(std::uint32_t index) override;
  Result<void> arm_irq(std::uint32_t index, std::uint32_t vector, int eventfd) override;
  Result<void> disarm_irq(std::uint32_t index, std::uint32_t vector) override;

  [[nodiscard]] bool resets_on_close() const override { return can_reset_; }
  Result<void> reset() override;

  [[nodiscard]] pollfd loss_event() const override { return {.fd = events_.get(), .events = POLLIN, .revents = 0}; }
  [[nodiscard]] Loss loss_seen() const override;

 protected:
  VfioDeviceFd(SystemCalls& system, const PciSysfs& sysfs, std::string address);

  /// Opens a character device of VFIO. `tried` begins the text of an error, `if_missing` is what to do if there is
  /// none.
  static Result<SystemFd> open_node(SystemCalls& system, const std::string& node, const std::string& tried,
                                    const std::string& if_missing);
  /// Reads what the device has and arms ERR and REQ. Called once, before any other call. `tried` begins the text of an
  /// error.
  Result<void> set_up(SystemFd device, const std::string& tried);

  /// The call `name` failed with `error`, doing `what` ("map 4096 bytes for it").
  Error failed(int error, const std::string& what, const std::string& name, const std::string& advice = "");
  /// Fails with loss_error() once the device is lost.
  [[nodiscard]] Result<void> check_there() const;
  /// A forked child must not unmap what its parent has mapped for the device.
  [[nodiscard]] Result<void> check_not_forked() const;
  /// Why the kernel refuses the function with EACCES.
  static std::string token_advice(const PciSysfs& sysfs, const VfioNodes& nodes);
  [[nodiscard]] std::string cannot(const std::string& what) const;

  void on_loss() override;
  /// Closes what is behind a descriptor of a lost device. The number stays ours, so that no other file gets it while a
  /// call is under way.
  void release(const SystemFd& descriptor);

  SystemCalls& system() const { return system_; }
  MemoryLock& memory_lock() { return memory_lock_; }

 private:
  struct Region {
    std::uint64_t size = 0;
    std::uint64_t offset = 0;  // in the file
    std::uint64_t front = 0;   // bytes from its start that can be mapped
  };

  Result<Region> query_region(std::uint32_t index, const std::string& tried);
  Result<void> set_up_loss(const std::string& tried);
  Result<SystemFd> make_event(const std::string& tried);
  Result<Region> find(std::uint32_t region, std::uint64_t offset, std::size_t size, const std::string& what) const;
  Result<void> set_irqs(std::uint32_t index, std::uint32_t first, std::span<const std::int32_t> eventfds);

  SystemCalls& system_;
  const std::string address_;
  const int numa_node_;
  const pid_t owner_;
  MemoryLock memory_lock_;

  // Fixed by set_up().
  SystemFd device_;
  std::uint32_t irqs_ = 0;
  bool can_reset_ = false;
  std::array<Region, GBA_NUM_REGIONS> regions_;
  SystemFd lost_event_;     // ours
  SystemFd error_event_;    // VFIO's ERR
  SystemFd request_event_;  // VFIO's REQ
  SystemFd events_;         // epoll of the three

  ForkMutex irq_mutex_;                     // guards what follows
  std::array<bool, GBA_NUM_IRQS> armed_{};  // has any vector of the index been armed?
};

/// "gba: ", what was tried, the call that failed and how, and what to do.
Error fail_call(int error, const std::string& tried, const std::string& call, const std::string& advice = "");

}  // namespace gba
