// SPDX-License-Identifier: Apache-2.0
// The GBAs that are plugged in, and which device a name means, without opening it.
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
  std::string name = {};         // "/dev/gba0" if udev has named it
  int numa_node = -1;            // -1: not known
  bool by_iommufd = false;       // device_node is that of the function (Linux 6.6), not of its IOMMU group
};

/// The node of its IOMMU group, through which it is opened on older kernels.
std::string group_node(const PciFunction& function);

/// By address. The ids are those of uapi/gba_device.h, or what $GBA_PCI_ID says; fails with -EINVAL if that is no id.
Result<std::vector<PciFunction>> find_functions();

struct Target {
  enum class Kind { kSocket, kFunction, kNothing };
  Kind kind = Kind::kNothing;
  std::string path = {};      // as it was named; what gba_open is given
  std::string socket = {};    // kSocket: of the vfio-user server; with a leading '@' an abstract name
  PciFunction function = {};  // kFunction
  std::string problem = {};   // kNothing: why not
  std::string fix = {};
};

/// `named`, or if that is empty $GBA_DEVICE, or else /dev/gba0, or else the first GBA that is plugged in.
Result<Target> find_target(const std::string& named);

}  // namespace tool
