// SPDX-License-Identifier: Apache-2.0
// A machine's sysfs and device nodes, in a folder.
#pragma once

#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace tool_test {

/// whole() makes it a working machine, from which a test removes something.
class FakeMachine {
 public:
  FakeMachine();

  [[nodiscard]] std::vector<std::string> environment() const;
  [[nodiscard]] std::string path(const std::string& name) const { return dir_.file(name); }
  void folder(const std::string& name) const;
  void file(const std::string& name, const std::string& text) const;
  void link(const std::string& name, const std::string& to) const;
  void remove(const std::string& name) const;

  struct Function {
    std::string address = "0000:3b:00.0";
    std::string vendor = "0x1eaf";
    std::string device = "0x0b01";
    std::string driver = "vfio-pci";
    std::string group = "12";
  };
  void plug_in(const Function& function) const;
  void bind(const std::string& address, const std::string& driver) const;
  static std::string device_folder(const std::string& address) { return "sys/bus/pci/devices/" + address; }

  /// A GBA, alone in IOMMU group 12 and ready to be opened through its group.
  void whole() const;
  /// As on Linux 6.6, where the function has its own character device.
  void with_iommufd() const;

 private:
  test_support::TempDir dir_;
};

}  // namespace tool_test
