// SPDX-License-Identifier: Apache-2.0
// Of a PCI function: IOMMU, driver, group, device nodes, memory.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "driver/tool/check.hpp"
#include "driver/tool/sysfs.hpp"
#include "uapi/gba_device.h"

namespace tool {

namespace {

Finding ok(const std::string& name, const std::string& found) {
  return {.name = name, .found = found};
}

Finding note(const std::string& name, const std::string& found) {
  return {.verdict = Verdict::kNote, .name = name, .found = found};
}

Finding problem(const std::string& name, const std::string& found, const std::string& mend) {
  return {.verdict = Verdict::kProblem, .name = name, .found = found, .mend = mend};
}

std::string device_folder(const std::string& address) {
  return sys_path("bus/pci/devices/" + address);
}

Finding check_iommu() {
  const auto units = names_in(sys_path("class/iommu"));
  const auto groups = names_in(sys_path("kernel/iommu_groups"));
  if (!units.empty() && !groups.empty()) return ok("iommu", join(units, ", ") + "; " + count(groups.size(), "group"));
  const std::string mend =
      "switch it on in the firmware (VT-d, AMD-Vi, SMMU), boot Linux with intel_iommu=on iommu=pt (Intel)";
  if (units.empty()) return problem("iommu", "the kernel knows no IOMMU", mend);
  return problem("iommu", join(units, ", ") + " is there, but no function is in an IOMMU group", mend);
}

Finding check_module() {
  if (exists(sys_path("bus/pci/drivers/vfio-pci"))) return ok("vfio-pci", "the kernel has it");
  return problem("vfio-pci", "the module is not loaded", "modprobe vfio-pci (as root)");
}

std::string bind_command(const std::string& address, const std::string& driver) {
  const std::string folder = "/sys/bus/pci/devices/" + address;
  return "echo vfio-pci > " + folder + "/driver_override" +
         (driver.empty() ? "" : "; echo " + address + " > " + folder + "/driver/unbind") + "; echo " + address +
         " > /sys/bus/pci/drivers_probe (as root; udev/70-gba.rules does it at each start)";
}

Finding check_driver(const PciFunction& function) {
  if (function.driver == "vfio-pci") return ok("driver", function.address + " is bound to vfio-pci");
  return problem("driver",
                 function.address + (function.driver.empty() ? " has no driver" : " is bound to " + function.driver),
                 bind_command(function.address, function.driver));
}

/// What the kernel lets be in a group that is opened (drivers that do no DMA of their own).
bool harmless(const std::string& driver) {
  constexpr std::array kDrivers{"", "vfio-pci", "pci-stub", "pcieport"};
  return std::find(kDrivers.begin(), kDrivers.end(), driver) != kDrivers.end();
}

Finding check_group(const PciFunction& function) {
  if (function.iommu_group.empty()) {
    return problem("group", function.address + " is in no IOMMU group",
                   "switch the IOMMU on; without one a device is not opened");
  }
  const std::string folder = sys_path("kernel/iommu_groups/" + function.iommu_group);
  if (first_line(folder + "/name").value_or("") == "vfio-noiommu") {
    return problem("group", "group " + function.iommu_group + " is one without an IOMMU, which libgba refuses",
                   "echo 0 > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode, and switch the IOMMU on");
  }
  const auto functions = names_in(folder + "/devices");
  std::vector<std::string> others;
  std::string mend;
  for (const auto& address : functions) {
    const std::string driver = link_name(device_folder(address) + "/driver");
    if (harmless(driver) || address == function.address) continue;
    others.push_back(address);
    others.back().append(" (").append(driver).append(")");
    if (mend.empty()) mend = bind_command(address, driver);
  }
  const std::string name = "group " + function.iommu_group + " of " + count(functions.size(), "function");
  if (others.empty()) return ok("group", name + " is viable");
  return problem("group", name + " is not viable: other drivers have " + join(others, ", "), mend);
}

Findings check_nodes(const PciFunction& function) {
  if (function.device_node.empty()) {
    return {problem("device node", "none: the function is in no IOMMU group", "switch the IOMMU on")};
  }
  Finding own = check_rights("device node", function.device_node);
  if (own.verdict == Verdict::kProblem && own.mend.empty())
    own.mend = "bind the function to vfio-pci: it makes the node";
  Finding shared = check_rights("memory node", dev_path(function.by_iommufd ? "iommu" : "vfio/vfio"));
  if (shared.verdict == Verdict::kProblem && shared.mend.empty()) shared.mend = "modprobe vfio-pci (as root)";
  if (own.verdict == Verdict::kOk && !function.name.empty()) own.found += ", also " + function.name;
  return {own, shared};
}

/// CAP_IPC_LOCK, with which no limit holds.
bool may_lock_all() {
  constexpr unsigned kCapIpcLock = 14;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("CapEff:")) return (std::strtoull(line.c_str() + 7, nullptr, 16) >> kCapIpcLock & 1) != 0;
  }
  return false;
}

constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;

/// The kernel pins the page that the release flags are in, and libgba locks it: each counts. When it is used up, the
/// next one is pinned before it goes.
Finding check_memlock() {
  constexpr std::uint64_t kFlags = std::uint64_t{GBA_MAX_GROUPS} * GBA_FLAG_STRIDE;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t needed = 3 * ((kFlags + page - 1) / page * page);
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || may_lock_all()) {
    return ok(kMemlock, "no limit");
  }
  const std::string found = "limit " + size(limit.rlim_cur) + ", needed " + size(needed);
  if (limit.rlim_cur >= kHugePage) return ok(kMemlock, found);
  if (limit.rlim_cur >= needed) return ok(kMemlock, found + " (a huge page would need " + size(kHugePage) + ")");
  return problem(
      kMemlock, found,
      "ulimit -l 2048, and for good: echo '@gba - memlock 2048' > /etc/security/limits.d/gba.conf (as root)");
}

Finding check_huge_pages() {
  const auto free = first_line(sys_path("kernel/mm/hugepages/hugepages-2048kB/free_hugepages")).value_or("0");
  if (free != "0") return ok("huge pages", free + " of 2 MiB are free");
  return note("huge pages", "none is free: flags are in ordinary pages (echo 1 > /proc/sys/vm/nr_hugepages makes one)");
}

}  // namespace

Findings check_function(const PciFunction& function) {
  Findings findings{
      ok("device", function.address + ", " + pci_id(function.vendor, function.device) +
                       (function.numa_node < 0 ? "" : ", NUMA node " + std::to_string(function.numa_node))),
      check_iommu(), check_module(), check_driver(function), check_group(function)};
  for (auto& finding : check_nodes(function)) findings.push_back(std::move(finding));
  findings.push_back(check_memlock());
  findings.push_back(check_huge_pages());
  return findings;
}

}  // namespace tool
