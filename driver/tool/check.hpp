// SPDX-License-Identifier: Apache-2.0
// The two halves of gba check.
#pragma once

#include "driver/tool/findings.hpp"
#include "driver/tool/pci_functions.hpp"

namespace tool {

/// The name of the finding on locked memory.
inline constexpr const char* kMemlock = "memlock";

/// What the kernel must have done before a PCI function can be opened.
Findings check_function(const PciFunction& function);
/// What must be so before the socket of a vfio-user server can be connected to.
Findings check_socket(const std::string& socket);

/// May this process read and write the file? A problem says what mends it, but for a file that is not there.
Finding check_rights(const std::string& name, const std::string& path);

}  // namespace tool
