// SPDX-License-Identifier: Apache-2.0
// The kernels that a program of tests boots: Debian's, or the one with iommufd.
#pragma once

#include <string>
#include <vector>

namespace vm {

/// The kernels' names in the cache, without "kernel-".
std::vector<std::string> kernels();

/// By what libgba has to open a device there if it is given the PCI address: as in gba_device_info.
std::string backend();

/// The scripts, with arguments, that see to it that QEMU and the kernels are in the cache. One that fails says why they
/// cannot be had.
std::vector<std::vector<std::string>> preparations();

}  // namespace vm
