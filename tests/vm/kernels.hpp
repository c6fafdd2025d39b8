// SPDX-License-Identifier: Apache-2.0
// The kernels that the tests boot: Debian's, or with GBA_VM_KERNEL=iommufd the one with iommufd.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace vm {

/// The kernels' names in the cache, without "kernel-".
std::vector<std::string> kernels();

/// The backend, as in gba_device_info, by which libgba must open a device there if it is given the PCI address.
std::string backend();

/// The scripts, with arguments, that provide QEMU and the kernels in the cache. A script that fails prints the reason.
std::vector<std::vector<std::string>> preparations();

/// The kernel's name as a part of a test's name.
inline std::string test_name(std::string kernel) {
  std::replace(kernel.begin(), kernel.end(), '-', '_');
  return kernel;
}

}  // namespace vm
