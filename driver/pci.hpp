// SPDX-License-Identifier: Apache-2.0
// PCI functions: their config space, and their drivers and IOMMU groups in sysfs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "driver/backend.hpp"
#include "driver/registers.hpp"

namespace gba {

struct PciId {
  std::uint16_t vendor;
  std::uint16_t device;
  friend bool operator==(const PciId&, const PciId&) = default;
};

/// "vvvv:dddd" in hexadecimal.
std::string to_text(PciId id);

/// The ids that a GBA may have: those of uapi/gba_device.h, or if `override_text` (of $GBA_PCI_ID) is not null, that
/// one alone. Fails with invalid_argument if the text is not of the form "vvvv:dddd".
Result<std::vector<PciId>> expected_pci_ids(const char* override_text);

/// A function's config space. A view of the backend, which outlives it.
class PciConfig {
 public:
  /// Fails with no_such_device if the device has none of the ids in `expected`.
  static Result<PciConfig> open(Backend& backend, std::span<const PciId> expected);

  [[nodiscard]] PciId id() const { return id_; }

  /// Lets the device answer in its memory regions.
  Result<void> enable_memory() { return set_command(kMemory); }
  /// Lets the device write to host memory and raise interrupts.
  Result<void> enable_bus_master() { return set_command(kBusMaster); }

 private:
  static constexpr std::uint16_t kMemory = 0x2;
  static constexpr std::uint16_t kBusMaster = 0x4;

  PciConfig(Registers registers, PciId id) : registers_(std::move(registers)), id_(id) {}
  Result<void> set_command(std::uint16_t bits);

  Registers registers_;
  PciId id_;
};

/// Each call reads sysfs. A missing file gives an empty result, never an error. Thread-safe.
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
  /// Addresses of those that `driver` has, ascending.
  [[nodiscard]] std::vector<std::string> functions_of(const std::string& driver) const;
  [[nodiscard]] std::optional<PciId> id(const std::string& address) const;
  /// The first half of id().
  [[nodiscard]] std::optional<std::uint16_t> vendor(const std::string& address) const;
  [[nodiscard]] std::string driver(const std::string& address) const;
  /// Below 0: none in particular.
  [[nodiscard]] int numa_node(const std::string& address) const;
  /// The number of the IOMMU group, as text.
  [[nodiscard]] std::string iommu_group(const std::string& address) const;
  /// That of an SR-IOV virtual function, else "".
  [[nodiscard]] std::string physical_function(const std::string& address) const;
  /// Does the kernel take a VF token for it? A physical function that can have virtual ones sets theirs with it.
  [[nodiscard]] bool wants_vf_token(const std::string& address) const;
  /// Is the group one of VFIO's no-IOMMU mode?
  [[nodiscard]] bool no_iommu(const std::string& group) const;
  /// Addresses of the functions of a group, ascending.
  [[nodiscard]] std::vector<std::string> group_functions(const std::string& group) const;
  /// "vfio0", if the kernel gives the function a character device of its own (Linux >= 6.6).
  [[nodiscard]] std::string vfio_device(const std::string& address) const;
  [[nodiscard]] CharacterDevice character_device(dev_t number) const;

  /// The other functions of the IOMMU group whose drivers keep the group from VFIO:
  /// "0000:3b:00.1 (driver nvme)".
  [[nodiscard]] std::string in_the_way_of(const std::string& address) const;

 private:
  [[nodiscard]] std::string function(const std::string& address) const;

  const std::string root_;
};

}  // namespace gba
