// SPDX-License-Identifier: Apache-2.0
// Which device is meant, told without opening it.
#pragma once

#include <string>

#include "driver/tool/pci_functions.hpp"

namespace tool {

struct Target {
  enum class Kind { kSocket, kFunction, kNothing };
  Kind kind = Kind::kNothing;
  std::string path = {};      // as it was named; what gba_open is given
  std::string socket = {};    // kSocket: of the vfio-user server; with a leading '@' an abstract name
  PciFunction function = {};  // kFunction
  std::string problem = {};   // kNothing: why not
  std::string mend = {};
};

/// `named`, or if that is empty $GBA_DEVICE, or else /dev/gba0, or else the first GBA that is plugged in.
Result<Target> find_target(const std::string& named);

}  // namespace tool
