// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/tool/fake_machine.hpp"

#include <filesystem>
#include <fstream>

namespace tool_test {

FakeMachine::FakeMachine() {
  folder("sys/bus/pci/devices");
  folder("sys/bus/pci/drivers");
  folder("dev");
}

std::vector<std::string> FakeMachine::environment() const {
  return {"GBA_SYSFS=" + dir_.file("sys"), "GBA_DEVFS=" + dir_.file("dev")};
}

void FakeMachine::folder(const std::string& name) const {
  std::filesystem::create_directories(path(name));
}

void FakeMachine::file(const std::string& name, const std::string& text) const {
  std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
  std::ofstream(path(name)) << text << "\n";
}

void FakeMachine::link(const std::string& name, const std::string& to) const {
  std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
  std::filesystem::remove(path(name));
  std::filesystem::create_symlink(to, path(name));
}

void FakeMachine::remove(const std::string& name) const {
  std::filesystem::remove_all(path(name));
}

void FakeMachine::plug_in(const Function& function) const {
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

void FakeMachine::bind(const std::string& address, const std::string& driver) const {
  folder("sys/bus/pci/drivers/" + driver);
  link(device_folder(address) + "/driver", "../../../../bus/pci/drivers/" + driver);
  link("sys/bus/pci/drivers/" + driver + "/" + address, "../../../../" + device_folder(address).substr(4));
}

void FakeMachine::whole() const {
  file("sys/class/iommu/dmar0/name", "");
  file("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "3");
  file("dev/vfio/vfio", "");
  file("dev/vfio/12", "");
  plug_in({});
}

void FakeMachine::with_iommufd() const {
  file(device_folder("0000:3b:00.0") + "/vfio-dev/vfio0/dev", "511:0");
  file("dev/vfio/devices/vfio0", "");
  file("dev/iommu", "");
}

}  // namespace tool_test
