// SPDX-License-Identifier: Apache-2.0
// A device behind the kernel's VFIO, by a character device of its own and iommufd: Linux 6.6 and later.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "driver/pci_sysfs.hpp"
#include "driver/vfio_device_fd.hpp"

namespace gba {

class VfioCdevBackend final : public VfioDeviceFd {
 public:
  /// Errors: those of gba_open. `system` outlives the backend and the mappings that it gives.
  static Result<std::unique_ptr<Backend>> open(SystemCalls& system, const PciSysfs& sysfs, const VfioNodes& nodes);

  [[nodiscard]] std::string name() const override { return "vfio-cdev"; }

  Result<DmaLimits> dma_limits() override;
  Result<void> dma_map(const DmaBuffer& buffer, std::uint64_t iova) override;
  Result<void> dma_unmap(std::uint64_t iova, std::size_t size) override;

 private:
  using VfioDeviceFd::VfioDeviceFd;

  /// Binds the device to iommufd and gives it an address space of its own, which goes with iommufd_.
  Result<void> attach(int device, const PciSysfs& sysfs, const std::string& address, const std::string& tried);

  SystemFd iommufd_;
  std::uint32_t address_space_ = 0;  // id of the IOAS
};

}  // namespace gba
