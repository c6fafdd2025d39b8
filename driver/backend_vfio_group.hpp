// SPDX-License-Identifier: Apache-2.0
// A device behind the kernel's VFIO, by its IOMMU group and a container of type 1: all kernels have this way.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "driver/pci_sysfs.hpp"
#include "driver/vfio_device_fd.hpp"

namespace gba {

class VfioGroupBackend final : public VfioDeviceFd {
 public:
  /// Errors: those of gba_open. `system` outlives the backend and the mappings that it gives.
  static Result<std::unique_ptr<Backend>> open(SystemCalls& system, const PciSysfs& sysfs, const VfioNodes& nodes);

  [[nodiscard]] std::string name() const override { return "vfio-group"; }

  Result<DmaLimits> dma_limits() override;
  Result<void> dma_map(const DmaBuffer& buffer, std::uint64_t iova) override;
  Result<void> dma_unmap(std::uint64_t iova, std::size_t size) override;

 private:
  using VfioDeviceFd::VfioDeviceFd;

  /// A group can be open once: whoever opens the device anew, here while somebody still holds the lost one, needs it.
  void on_loss() override;

  Result<void> open_container(const std::string& node, const std::string& tried);
  Result<void> open_group(const PciSysfs& sysfs, const VfioNodes& nodes, const std::string& tried);
  Result<void> open_device(const std::string& address, const std::string& tried);

  SystemFd container_;
  SystemFd group_;
  std::atomic<bool> given_back_{false};  // both
};

}  // namespace gba
