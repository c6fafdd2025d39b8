// SPDX-License-Identifier: Apache-2.0
// The GBAs that are plugged in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/tool/device.hpp"

namespace tool {

/// One PCI function of a GBA, as the kernel sees it.
struct PciFunction {
  std::string address = {};  // "0000:3b:00.0"
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::string driver = {};       // that it is bound to; empty: none
  std::string iommu_group = {};  // empty: none
  std::string device_node = {};  // through which it is opened, whether it is there or not; empty: it has none
  std::string name = {};         // "/dev/gba0" where udev has given it one
  int numa_node = -1;            // -1: not known
  bool by_iommufd = false;       // device_node is that of the function (Linux 6.6), not of its IOMMU group
};

/// The node of its IOMMU group, through which it is opened on older kernels.
std::string group_node(const PciFunction& function);

/// By address. The ids are those of uapi/gba_device.h, or what $GBA_PCI_ID says; fails with -EINVAL if that is no id.
Result<std::vector<PciFunction>> find_functions();

}  // namespace tool
