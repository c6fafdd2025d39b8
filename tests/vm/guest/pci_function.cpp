// SPDX-License-Identifier: Apache-2.0
#include "tests/vm/guest/pci_function.hpp"

#include <fcntl.h>
#include <linux/pci_regs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/fd.hpp"
#include "tests/vm/guest/require.hpp"
#include "uapi/gba_device.h"

namespace guest {
namespace {

constexpr const char* kDevices = "/sys/bus/pci/devices/";

std::uint64_t read_number(const std::string& path) {
  std::ifstream in(path);
  std::string text;
  require(static_cast<bool>(in >> text), "cannot read " + path);
  return std::stoull(text, nullptr, 16);
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream out(path);
  out << text << std::flush;
  require(static_cast<bool>(out), "cannot write " + text + " to " + path);
}

}  // namespace

std::vector<PciFunction> PciFunction::find_all() {
  std::vector<PciFunction> found;
  for (const auto& entry : std::filesystem::directory_iterator(kDevices)) {
    PciFunction function(entry.path().filename());
    if (function.number("vendor") == GBA_PCI_VENDOR_ID && function.number("device") == GBA_PCI_DEVICE_ID) {
      found.push_back(std::move(function));
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.address_ < b.address_; });
  return found;
}

PciFunction PciFunction::find() {
  auto all = find_all();
  require(!all.empty(), "no PCI function has the ids of a GBA");
  return std::move(all.front());
}

bool PciFunction::exists() const {
  return std::filesystem::exists(kDevices + address_);
}

std::string PciFunction::file(const std::string& name) const {
  return kDevices + address_ + "/" + name;
}

std::uint64_t PciFunction::number(const std::string& name) const {
  return read_number(file(name));
}

std::uint64_t PciFunction::bar_size(unsigned index) const {
  std::ifstream in(file("resource"));
  std::string first;
  std::string last;
  std::string flags;
  for (unsigned line = 0; line <= index; ++line) {
    require(static_cast<bool>(in >> first >> last >> flags), "cannot read " + file("resource"));
  }
  const auto end = std::stoull(last, nullptr, 16);
  return end == 0 ? 0 : end - std::stoull(first, nullptr, 16) + 1;
}

base::Mapping PciFunction::map_bar(unsigned index) const {
  const auto path = file("resource" + std::to_string(index));
  const base::UniqueFd fd(require_call(::open(path.c_str(), O_RDWR | O_CLOEXEC), path));
  return require_result(gba::map_shared(fd.get(), 0, bar_size(index), path));
}

std::uint32_t PciFunction::read_config(unsigned offset, unsigned size) const {
  const base::UniqueFd fd(require_call(::open(file("config").c_str(), O_RDONLY | O_CLOEXEC), "open config space"));
  std::uint32_t value = 0;
  require(::pread(fd.get(), &value, size, offset) == static_cast<ssize_t>(size), "cannot read config space");
  return value;
}

void PciFunction::write_config(unsigned offset, std::uint32_t value, unsigned size) const {
  const base::UniqueFd fd(require_call(::open(file("config").c_str(), O_RDWR | O_CLOEXEC), "open config space"));
  require(::pwrite(fd.get(), &value, size, offset) == static_cast<ssize_t>(size), "cannot write config space");
}

unsigned PciFunction::find_capability(unsigned id) const {
  unsigned hops = 0;
  for (unsigned at = read_config(PCI_CAPABILITY_LIST, 1); at != 0; at = read_config(at + PCI_CAP_LIST_NEXT, 1)) {
    require(++hops < 48, "the list of capabilities does not end");
    if (read_config(at + PCI_CAP_LIST_ID, 1) == id) {
      return at;
    }
  }
  return 0;
}

void PciFunction::bind(const std::string& driver) const {
  write_text(file("driver_override"), driver);
  write_text("/sys/bus/pci/drivers_probe", address_);
  require(std::filesystem::exists(file("driver")), "the kernel's " + driver + " does not take the function");
}

std::string PciFunction::iommu_group() const {
  return std::filesystem::read_symlink(file("iommu_group")).filename();
}

std::uint64_t PciFunction::interrupts() const {
  std::uint64_t sum = 0;
  std::ifstream in("/proc/interrupts");
  for (std::string line; std::getline(in, line);) {
    if (line.find("vfio-msix[") == std::string::npos || line.find(address_) == std::string::npos) {
      continue;
    }
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::uint64_t of_processor = 0; words >> of_processor;) {
      sum += of_processor;
    }
  }
  return sum;
}

std::string PciFunction::vfio_device() const {
  const std::filesystem::path folder(file("vfio-dev"));  // exists even without a node
  if (!std::filesystem::exists(folder)) {
    return "";
  }
  const auto name = std::filesystem::directory_iterator(folder)->path().filename().string();
  const auto node = "/dev/vfio/devices/" + name;
  return std::filesystem::exists(node) ? node : "";
}

}  // namespace guest
