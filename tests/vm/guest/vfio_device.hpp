// SPDX-License-Identifier: Apache-2.0
// The device through the kernel's VFIO: container, group, device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/fd.hpp"
#include "driver/system_calls.hpp"

struct vfio_region_info;

namespace guest {

/// Failures throw std::exception with the reason.
class VfioDevice {
 public:
  /// The function `address` of IOMMU group `group`, bound to vfio-pci.
  VfioDevice(const std::string& group, const std::string& address);

  [[nodiscard]] std::uint32_t device_flags() const;
  [[nodiscard]] std::uint64_t region_size(unsigned index) const;
  [[nodiscard]] unsigned interrupts(unsigned index) const;

  [[nodiscard]] base::Mapping map_region(unsigned index) const;
  void set_bus_master(bool on) const;
  void map_dma(std::uint64_t iova, std::span<std::byte> memory) const;
  void unmap_dma(std::uint64_t iova, std::size_t size) const;
  /// Arms the MSI-X vectors from 0.
  void arm(std::span<const int> eventfds) const;
  void reset() const;

 private:
  [[nodiscard]] vfio_region_info region(unsigned index) const;

  base::UniqueFd container_;
  base::UniqueFd group_;
  base::UniqueFd device_;
};

}  // namespace guest
