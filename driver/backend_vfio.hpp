// SPDX-License-Identifier: Apache-2.0
// The two ways to a device behind the kernel's VFIO: its IOMMU group, or a character device of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "driver/pci.hpp"
#include "driver/vfio_context.hpp"
#include "driver/vfio_device_fd.hpp"

namespace gba {

class VfioGroupBackend final : public VfioDeviceFd {
 public:
  /// Errors: those of gba_open. `system` outlives the backend and the mappings that it gives. Devices that are opened
  /// with the same `contexts` may be in the same IOMMU group.
  static Result<std::unique_ptr<Backend>> open(SystemCalls& system, const PciSysfs& sysfs, const VfioNodes& nodes,
                                               VfioContexts& contexts);
  static Result<std::unique_ptr<Backend>> open(SystemCalls& system, const PciSysfs& sysfs, const VfioNodes& nodes);
  ~VfioGroupBackend() override;

  [[nodiscard]] std::string name() const override { return "vfio-group"; }

  Result<DmaLimits> dma_limits() override;
  Result<std::shared_ptr<IovaSpace>> iova_space(const DmaLimits& limits) override {
    return context_->iova_space(limits);
  }
  Result<void> dma_map(const DmaBuffer& buffer, std::uint64_t iova) override;
  Result<void> dma_unmap(std::uint64_t iova, std::size_t size) override;

 private:
  using VfioDeviceFd::VfioDeviceFd;

  /// A group can be open only once, so it is closed for the next opener, even while the lost device is still held.
  void on_loss() override;

  Result<void> open_container(VfioContext& context, const std::string& node, const std::string& tried);
  Result<void> open_group(VfioContext& context, const PciSysfs& sysfs, const VfioNodes& nodes,
                          const std::string& tried);
  Result<void> open_device(const PciSysfs& sysfs, const VfioNodes& nodes, const std::string& tried);

  std::shared_ptr<VfioContext> context_;
  std::atomic<bool> left_{false};  // the context
};

class VfioCdevBackend final : public VfioDeviceFd {
 public:
  /// As VfioGroupBackend::open.
  static Result<std::unique_ptr<Backend>> open(SystemCalls& system, const PciSysfs& sysfs, const VfioNodes& nodes,
                                               VfioContexts& contexts);
  static Result<std::unique_ptr<Backend>> open(SystemCalls& system, const PciSysfs& sysfs, const VfioNodes& nodes);

  [[nodiscard]] std::string name() const override { return "vfio-cdev"; }

  Result<DmaLimits> dma_limits() override;
  Result<std::shared_ptr<IovaSpace>> iova_space(const DmaLimits& limits) override {
    return context_->iova_space(limits);
  }
  Result<void> dma_map(const DmaBuffer& buffer, std::uint64_t iova) override;
  Result<void> dma_unmap(std::uint64_t iova, std::size_t size) override;

 private:
  using VfioDeviceFd::VfioDeviceFd;

  /// Binds the device to iommufd and gives it the address space of its IOMMU group.
  Result<void> attach(int device, const PciSysfs& sysfs, const VfioNodes& nodes, const std::string& tried);
  /// 0, or the errno of VFIO_DEVICE_BIND_IOMMUFD.
  int bind(int device, const VfioNodes& nodes);

  std::shared_ptr<VfioContext> context_;
};

}  // namespace gba
