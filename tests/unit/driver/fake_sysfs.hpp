// SPDX-License-Identifier: Apache-2.0
// A sysfs in a temporary folder, with the links that the kernel makes.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/process.hpp"

namespace gba::test {

class FakeSysfs {
 public:
  using Path = std::filesystem::path;

  [[nodiscard]] std::string path() const { return dir_.path(); }

  /// A PCI function, with an IOMMU group and a driver if they are not "".
  void add(const std::string& address, const std::string& group, const std::string& driver,
           const std::string& device = "0x0b01") {
    const Path folder = function(address);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "vendor") << "0x1eaf\n";
    std::ofstream(folder / "device") << device << '\n';
    link(root() / "bus/pci/devices" / address, folder);
    if (!group.empty()) {
      link(root() / "kernel/iommu_groups" / group / "devices" / address, folder);
      link(folder / "iommu_group", root() / "kernel/iommu_groups" / group);
    }
    if (!driver.empty()) {
      const Path of_driver = root() / "bus/pci/drivers" / driver;
      link(of_driver / address, folder);
      std::ofstream(of_driver / "bind");
      link(folder / "driver", of_driver);
    }
  }

  /// The function's device in class vfio-dev, such as "vfio0". `number` is its character device's, or "" for none.
  void add_vfio_device(const std::string& address, const std::string& name, const std::string& number) {
    const Path folder = function(address) / "vfio-dev" / name;
    add_character_device(folder, "vfio-dev", number);
    link(folder / "device", function(address));
  }

  /// The character device of an IOMMU group.
  void add_group_node(const std::string& group, const std::string& number) {
    add_character_device(root() / "devices/virtual/vfio" / group, "vfio", number);
  }

  void add_character_device(const Path& folder, const std::string& subsystem, const std::string& number) {
    std::filesystem::create_directories(folder);
    std::filesystem::create_directories(root() / "class" / subsystem);
    link(folder / "subsystem", root() / "class" / subsystem);
    if (number.empty()) {
      return;
    }
    std::ofstream(folder / "dev") << number << '\n';
    std::filesystem::remove(root() / "dev/char" / number);
    link(root() / "dev/char" / number, folder);
  }

  void set_numa_node(const std::string& address, const std::string& node) {
    std::ofstream(function(address) / "numa_node") << node << '\n';
  }

  void set_group_name(const std::string& group, const std::string& name) {
    std::ofstream(root() / "kernel/iommu_groups" / group / "name") << name << '\n';
  }

  [[nodiscard]] Path root() const { return dir_.path(); }

 private:
  [[nodiscard]] Path function(const std::string& address) const { return root() / "devices/pci0000:3a" / address; }
  static void link(const Path& from, const Path& to) {
    std::filesystem::create_directories(from.parent_path());
    std::filesystem::create_directory_symlink(to, from);
  }

  test_support::TempDir dir_;
};

}  // namespace gba::test
