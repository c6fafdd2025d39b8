// SPDX-License-Identifier: Apache-2.0
// What sysfs says about PCI functions, their drivers and their IOMMU groups.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/pci_config.hpp"

namespace gba {

/// Everything is looked up when it is asked for. What is not there is empty, never an error. Thread-safe.
class PciSysfs {
 public:
  /// What a character device is.
  struct CharacterDevice {
    std::string subsystem;  // "vfio-dev", "vfio"
    std::string name;       // "vfio0", "12"
    std::string parent;     // the PCI function that it belongs to: "0000:3b:00.0"
  };

  explicit PciSysfs(std::string root = "/sys") : root_(std::move(root)) {}

  /// Addresses of all functions, ascending.
  [[nodiscard]] std::vector<std::string> functions() const;
  [[nodiscard]] std::optional<PciId> id(const std::string& address) const;
  [[nodiscard]] std::string driver(const std::string& address) const;
  /// Below 0: none in particular.
  [[nodiscard]] int numa_node(const std::string& address) const;
  /// The number of the IOMMU group, as text.
  [[nodiscard]] std::string iommu_group(const std::string& address) const;
  /// Is the group one of VFIO's no-IOMMU mode?
  [[nodiscard]] bool no_iommu(const std::string& group) const;
  /// Addresses of the functions of a group, ascending.
  [[nodiscard]] std::vector<std::string> group_functions(const std::string& group) const;
  /// "vfio0", if the kernel gives the function a character device of its own (Linux >= 6.6).
  [[nodiscard]] std::string vfio_device(const std::string& address) const;
  [[nodiscard]] CharacterDevice character_device(dev_t number) const;

  /// The other functions of the IOMMU group that have drivers of their own, and so keep it from VFIO:
  /// "0000:3b:00.1 (driver nvme)".
  [[nodiscard]] std::string in_the_way_of(const std::string& address) const;

 private:
  [[nodiscard]] std::string function(const std::string& address) const;

  const std::string root_;
};

}  // namespace gba
