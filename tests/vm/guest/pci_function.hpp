// SPDX-License-Identifier: Apache-2.0
// The device as a PCI function in sysfs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/system_calls.hpp"

namespace guest {

/// Failures throw std::exception with the reason.
class PciFunction {
 public:
  /// The functions with the ids of a GBA, by address.
  static std::vector<PciFunction> find_all();
  /// The first of them.
  static PciFunction find();

  /// As in 0000:00:02.0
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] bool exists() const;
  /// The number in a file of the function, such as class or enable.
  [[nodiscard]] std::uint64_t number(const std::string& file) const;
  [[nodiscard]] std::uint64_t bar_size(unsigned index) const;
  [[nodiscard]] base::Mapping map_bar(unsigned index) const;

  [[nodiscard]] std::uint32_t read_config(unsigned offset, unsigned size) const;
  void write_config(unsigned offset, std::uint32_t value, unsigned size) const;
  /// The offset of capability `id` in config space, 0 if the function does not have it.
  [[nodiscard]] unsigned find_capability(unsigned id) const;

  void bind(const std::string& driver) const;
  /// The number of its IOMMU group.
  [[nodiscard]] std::string iommu_group() const;
  /// How often its MSI-X vectors were raised since VFIO set them up.
  [[nodiscard]] std::uint64_t interrupts() const;
  /// The function's own VFIO node, such as /dev/vfio/devices/vfio0, or empty if the kernel makes none.
  [[nodiscard]] std::string vfio_device() const;

 private:
  explicit PciFunction(std::string address) : address_(std::move(address)) {}
  [[nodiscard]] std::string file(const std::string& name) const;

  std::string address_;
};

}  // namespace guest
