// SPDX-License-Identifier: Apache-2.0
// A machine's sysfs and device nodes, in a folder.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace tool_test {

/// whole() makes it a working machine, from which a test removes something.
class FakeMachine {
 public:
  FakeMachine() {
    folder("sys/bus/pci/devices");
    folder("sys/bus/pci/drivers");
    folder("dev");
  }

  [[nodiscard]] std::vector<std::string> environment() const {
    return {"GBA_SYSFS=" + dir_.file("sys"), "GBA_DEVFS=" + dir_.file("dev")};
  }
  [[nodiscard]] std::string path(const std::string& name) const { return dir_.file(name); }
  void folder(const std::string& name) const { std::filesystem::create_directories(path(name)); }
  void file(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name)) << text << "\n";
  }
  void link(const std::string& name, const std::string& to) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::filesystem::remove(path(name));
    std::filesystem::create_symlink(to, path(name));
  }
  void remove(const std::string& name) const { std::filesystem::remove_all(path(name)); }

  struct Function {
    std::string address = "0000:3b:00.0";
    std::string vendor = "0x1eaf";
    std::string device = "0x0b01";
    std::string driver = "vfio-pci";
    std::string group = "12";
  };
  void plug_in(const Function& function) const {
    const std::string at = device_folder(function.address);
    file(at + "/vendor", function.vendor);
    file(at + "/device", function.device);
    file(at + "/class", "0x120000");
    file(at + "/numa_node", "1");
    file(at + "/irq", "0");
    file(at + "/resource", "0x0 0x0 0x0");
    if (!function.driver.empty()) {
      bind(function.address, function.driver);
    }
    if (!function.group.empty()) {
      link(at + "/iommu_group", "../../../../kernel/iommu_groups/" + function.group);
      link("sys/kernel/iommu_groups/" + function.group + "/devices/" + function.address, "../../../../bus");
    }
  }
  void bind(const std::string& address, const std::string& driver) const {
    folder("sys/bus/pci/drivers/" + driver);
    link(device_folder(address) + "/driver", "../../../../bus/pci/drivers/" + driver);
  }
  static std::string device_folder(const std::string& address) { return "sys/bus/pci/devices/" + address; }

  /// A GBA, alone in IOMMU group 12 and ready to be opened through its group.
  void whole() const {
    file("sys/class/iommu/dmar0/name", "");
    file("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "3");
    file("dev/vfio/vfio", "");
    file("dev/vfio/12", "");
    plug_in({});
  }
  /// As on Linux 6.6, where the function has its own character device.
  void with_iommufd() const {
    file(device_folder("0000:3b:00.0") + "/vfio-dev/vfio0/dev", "511:0");
    file("dev/vfio/devices/vfio0", "");
    file("dev/iommu", "");
  }

 private:
  test_support::TempDir dir_;
};

}  // namespace tool_test
