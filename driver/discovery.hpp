// SPDX-License-Identifier: Apache-2.0
// Which device is meant, and how it is reached.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "driver/backend.hpp"
#include "driver/pci.hpp"
#include "driver/result.hpp"
#include "driver/vfio_context.hpp"
#include "driver/vfio_device_fd.hpp"

namespace gba {

enum class Way { kVfioUser, kVfioGroup, kVfioCdev };

/// A device that was named. It need not answer.
struct Location {
  Way way = Way::kVfioUser;
  std::string shown;   // for people: "vfio-user:/run/gba.sock", "0000:3b:00.0"
  std::string socket;  // kVfioUser: of the server; with a leading '@' an abstract name
  VfioNodes nodes;     // the other two
  std::string key;     // equal for all names of one device
};

/// Finds out what a path leads to. Thread-safe.
class DeviceFinder {
 public:
  /// `sys` and `dev` are where sysfs and the device nodes are; `ids` are those of a GBA.
  /// `token`: for functions that want one.
  DeviceFinder(const std::string& sys, std::string dev, std::vector<PciId> ids, VfToken token = {})
      : sysfs_(sys), dev_(std::move(dev)), ids_(std::move(ids)), token_(std::move(token)) {}

  /// The device at `path`; null or empty means $GBA_DEVICE, or else gba0 in `dev`, or else the first GBA of the
  /// machine. Errors: those of gba_open.
  [[nodiscard]] Result<Location> find(const char* path) const;

  /// PCI addresses of the GBAs that vfio-pci has, ascending.
  [[nodiscard]] std::vector<std::string> all() const;

 private:
  [[nodiscard]] Result<Location> at(const std::string& path) const;
  [[nodiscard]] Result<Location> first() const;
  [[nodiscard]] Result<Location> by_address(const std::string& address) const;
  [[nodiscard]] Result<Location> character_device(const std::string& path, dev_t number) const;
  [[nodiscard]] Result<Location> by_group(const std::string& path, const std::string& group) const;
  /// Is this function a GBA that vfio-pci has?
  [[nodiscard]] Result<void> check(const std::string& address, const std::string& tried) const;
  [[nodiscard]] bool is_gba(const std::string& address) const;
  [[nodiscard]] VfToken token_for(const std::string& address) const;
  [[nodiscard]] Location by_cdev(const std::string& node, const std::string& address) const;
  [[nodiscard]] Location by_group_node(const std::string& node, const std::string& address) const;

  const PciSysfs sysfs_;
  const std::string dev_;
  const std::vector<PciId> ids_;
  const VfToken token_;
};

/// DeviceFinder::find() on this machine.
Result<Location> find_device(const char* path);
/// DeviceFinder::all() on this machine.
Result<std::vector<std::string>> list_devices();

/// Devices that are opened with the same `contexts` may be in the same IOMMU group.
Result<std::unique_ptr<Backend>> open_backend(const Location& location, VfioContexts& contexts);

}  // namespace gba
