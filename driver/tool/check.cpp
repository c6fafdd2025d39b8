// SPDX-License-Identifier: Apache-2.0
// gba check: can the device be opened, and if not, what fixes it.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grp.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/size_text.hpp"
#include "driver/tool/check.hpp"
#include "driver/tool/output.hpp"
#include "driver/tool/system.hpp"
#include "driver/tool/target.hpp"
#include "uapi/gba_device.h"

namespace tool {
namespace {

constexpr const char* kMemlock = "memlock";  // the name of the finding on locked memory

std::string group_name(gid_t id) {
  const group* const entry = ::getgrgid(id);
  return entry == nullptr ? std::to_string(id) : entry->gr_name;
}

std::string user_name(uid_t id) {
  const passwd* const entry = ::getpwuid(id);
  return entry == nullptr ? std::to_string(id) : entry->pw_name;
}

/// "root:gba 0660".
std::string rights_text(const struct stat& status) {
  return fmt::format("{}:{} {:04o}", user_name(status.st_uid), group_name(status.st_gid), status.st_mode & 07777U);
}

std::string fix_rights(const struct stat& status, const std::string& path) {
  constexpr mode_t kGroupMayUse = S_IRGRP | S_IWGRP;
  if ((status.st_mode & kGroupMayUse) == kGroupMayUse && status.st_gid != 0) {
    return fmt::format("usermod -a -G {} {} (as root), then log in again", group_name(status.st_gid),
                       user_name(::geteuid()));
  }
  if (S_ISSOCK(status.st_mode)) {
    return fmt::format("chgrp gba {0} && chmod 0660 {0} (or gba-fake-device --mode)", path);
  }
  return "install 70-gba.rules and gba-index (package gba-udev), then udevadm control --reload && "
         "/usr/lib/udev/gba-index --trigger (as root)";
}

/// May this process read and write the file? A problem has a fix, except for a missing file.
Finding check_rights(const std::string& name, const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    const bool hidden = errno == EACCES;
    return {.verdict = Verdict::kProblem,
            .name = name,
            .found = hidden ? fmt::format("no permission to search the folder of {}", path)
                            : fmt::format("there is no {}", path),
            .fix = hidden ? fmt::format("namei -l {} shows the owner of the folder, who may chmod a+x it", path) : ""};
  }
  if (::faccessat(AT_FDCWD, path.c_str(), R_OK | W_OK, AT_EACCESS) == 0) {
    return {.name = name, .found = fmt::format("{}, {}", path, rights_text(status))};
  }
  return {
      .verdict = Verdict::kProblem,
      .name = name,
      .found = fmt::format("user {} has no permission for {}, {}", user_name(::geteuid()), path, rights_text(status)),
      .fix = fix_rights(status, path)};
}

// ---- A PCI function: IOMMU, driver, group, device nodes, memory ----

Finding ok(const std::string& name, const std::string& found) {
  return {.name = name, .found = found};
}

Finding note(const std::string& name, const std::string& found) {
  return {.verdict = Verdict::kNote, .name = name, .found = found};
}

Finding problem(const std::string& name, const std::string& found, const std::string& fix) {
  return {.verdict = Verdict::kProblem, .name = name, .found = found, .fix = fix};
}

std::string device_folder(const std::string& address) {
  return sys_path("bus/pci/devices/" + address);
}

Finding check_iommu() {
  const auto units = names_in(sys_path("class/iommu"));
  const auto groups = names_in(sys_path("kernel/iommu_groups"));
  if (!units.empty() && !groups.empty()) {
    return ok("iommu", fmt::format("{}; {}", fmt::join(units, ", "), count(groups.size(), "group")));
  }
  const std::string fix =
      "switch it on in the firmware (VT-d, AMD-Vi, SMMU), boot Linux with intel_iommu=on iommu=pt (Intel)";
  if (units.empty()) {
    return problem("iommu", "the kernel knows no IOMMU", fix);
  }
  return problem("iommu",
                 fmt::format("the kernel has {}, but no function is in an IOMMU group", fmt::join(units, ", ")), fix);
}

Finding check_module() {
  if (exists(sys_path("bus/pci/drivers/vfio-pci"))) {
    return ok("vfio-pci", "the kernel has it");
  }
  return problem("vfio-pci", "the module is not loaded", "modprobe vfio-pci (as root)");
}

std::string bind_command(const std::string& address, const std::string& driver) {
  const std::string unbind =
      driver.empty() ? "" : fmt::format("; echo {0} > /sys/bus/pci/devices/{0}/driver/unbind", address);
  return fmt::format(
      "echo vfio-pci > /sys/bus/pci/devices/{0}/driver_override{1}; echo {0} > /sys/bus/pci/drivers_probe "
      "(as root; 70-gba.rules of package gba-udev does it at each start)",
      address, unbind);
}

Finding check_driver(const PciFunction& function) {
  if (function.driver == "vfio-pci") {
    return ok("driver", fmt::format("{} is bound to vfio-pci", function.address));
  }
  return problem("driver",
                 function.address + (function.driver.empty() ? " has no driver" : " is bound to " + function.driver),
                 bind_command(function.address, function.driver));
}

/// Drivers that the kernel accepts in a group that VFIO opens, because they do no DMA of their own.
bool harmless(const std::string& driver) {
  constexpr std::array kDrivers{"", "vfio-pci", "pci-stub", "pcieport"};
  return std::find(kDrivers.begin(), kDrivers.end(), driver) != kDrivers.end();
}

Finding check_group(const PciFunction& function) {
  if (function.iommu_group.empty()) {
    return problem("group", fmt::format("{} is in no IOMMU group", function.address),
                   "switch the IOMMU on; without one a device is not opened");
  }
  const std::string folder = sys_path("kernel/iommu_groups/" + function.iommu_group);
  if (first_line(folder + "/name").value_or("") == "vfio-noiommu") {
    return problem("group", fmt::format("group {} has no IOMMU, which libgba refuses", function.iommu_group),
                   "echo 0 > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode, and switch the IOMMU on");
  }
  const auto functions = names_in(folder + "/devices");
  std::vector<std::string> others;
  std::string fix;
  for (const auto& address : functions) {
    const std::string driver = link_name(device_folder(address) + "/driver");
    if (harmless(driver) || address == function.address) {
      continue;
    }
    others.push_back(fmt::format("{} ({})", address, driver));
    if (fix.empty()) {
      fix = bind_command(address, driver);
    }
  }
  const std::string name = fmt::format("group {} of {}", function.iommu_group, count(functions.size(), "function"));
  if (others.empty()) {
    return ok("group", fmt::format("{} is viable", name));
  }
  return problem("group", fmt::format("{} is not viable: other drivers have {}", name, fmt::join(others, ", ")), fix);
}

Findings check_nodes(const PciFunction& function) {
  if (function.device_node.empty()) {
    return {problem("device node", "none: the function is in no IOMMU group", "switch the IOMMU on")};
  }
  Finding own = check_rights("device node", function.device_node);
  if (own.verdict == Verdict::kProblem && own.fix.empty()) {
    own.fix = "bind the function to vfio-pci: it makes the node";
  }
  Finding shared = check_rights("memory node", dev_path(function.by_iommufd ? "iommu" : "vfio/vfio"));
  if (shared.verdict == Verdict::kProblem && shared.fix.empty()) {
    shared.fix = "modprobe vfio-pci (as root)";
  }
  if (own.verdict == Verdict::kOk && !function.name.empty()) {
    own.found += fmt::format(", also {}", function.name);
  }
  return {own, shared};
}

/// CAP_IPC_LOCK, which lifts the limit.
bool may_lock_all() {
  constexpr unsigned kCapIpcLock = 14;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("CapEff:")) {
      return (std::strtoull(line.c_str() + 7, nullptr, 16) >> kCapIpcLock & 1) != 0;
    }
  }
  return false;
}

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
  const std::string found =
      fmt::format("limit {}, needed {}", base::size_text(limit.rlim_cur), base::size_text(needed));
  if (limit.rlim_cur >= needed) {
    return ok(kMemlock, found);
  }
  return problem(
      kMemlock, found,
      "ulimit -l 2048, and for good: echo '@gba - memlock 2048' > /etc/security/limits.d/gba.conf (as root)");
}

/// Only who asks for huge pages needs them.
Finding check_huge_pages() {
  const char* const flags = std::getenv("GBA_FLAGS");
  const auto free = first_line(sys_path("kernel/mm/hugepages/hugepages-2048kB/free_hugepages")).value_or("0");
  if (free != "0" || flags == nullptr || std::string_view(flags) != "huge") {
    return ok("huge pages", fmt::format("{} of 2 MiB are free", free));
  }
  return note("huge pages",
              "none is free: flags are in ordinary pages (echo 1 > /proc/sys/vm/nr_hugepages reserves one)");
}

/// What the kernel must have done before a PCI function can be opened.
Findings check_function(const PciFunction& function) {
  Findings findings{
      ok("device", fmt::format("{}, {}{}", function.address, pci_id(function.vendor, function.device),
                               function.numa_node < 0 ? "" : fmt::format(", NUMA node {}", function.numa_node))),
      check_iommu(), check_module(), check_driver(function), check_group(function)};
  for (auto& finding : check_nodes(function)) {
    findings.push_back(std::move(finding));
  }
  findings.push_back(check_memlock());
  findings.push_back(check_huge_pages());
  return findings;
}

// ---- The socket of a vfio-user server ----

Findings check_socket(const std::string& socket) {
  if (socket.starts_with('@')) {
    return {{.name = "socket", .found = fmt::format("{}, an abstract name", socket)}};
  }
  struct stat status {};
  const std::string serve = fmt::format("gba-fake-device --socket {}", socket);
  if (::stat(socket.c_str(), &status) != 0 && errno != EACCES) {
    return {
        {.verdict = Verdict::kProblem, .name = "socket", .found = fmt::format("there is no {}", socket), .fix = serve}};
  }
  if (status.st_mode != 0 && !S_ISSOCK(status.st_mode)) {
    return {{.verdict = Verdict::kProblem,
             .name = "socket",
             .found = fmt::format("{} is not a socket", socket),
             .fix = serve + " (with an unused name)"}};
  }
  return {check_rights("socket", socket)};
}

// ---- Opening it ----

/// Does libgba open it?
Finding check_opens(const std::string& path) {
  const auto device = open_device(path);
  if (!device && device.error().error == -EBUSY) {
    return {.verdict = Verdict::kNote, .name = "opens", .found = fmt::format("it is in use: {}", device.error().text)};
  }
  if (!device && device.error().error == -EIO) {
    return {.verdict = Verdict::kProblem,
            .name = "opens",
            .found = device.error().text,
            .fix = "gba reset --yes DEVICE, DEVICE being the privileged port"};
  }
  if (!device) {
    return {.verdict = Verdict::kProblem, .name = "opens", .found = device.error().text};
  }
  if (gba_device_check(device->get()) != 0) {
    return {.verdict = Verdict::kProblem, .name = "opens", .found = gba_error_text()};
  }
  const auto info = info_of(device->get());
  if (!info) {
    return {.verdict = Verdict::kProblem, .name = "opens", .found = info.error().text};
  }
  return {.name = "opens",
          .found = fmt::format("port {}, {} of up to {}, release flags {}", info->port, count(info->groups, "group"),
                               count(info->members, "member"), flag_place(*info))};
}

// ---- Either ----

/// Hardware or a process? The name does not show it: /dev/gba0 may be either.
Finding kind_of(const Target& target) {
  if (target.kind == Target::Kind::kFunction) {
    return {.name = "kind", .found = fmt::format("hardware: PCI function {}", target.function.address)};
  }
  std::error_code error;
  const auto behind = std::filesystem::read_symlink(target.socket, error);
  return {.name = "kind",
          .found = fmt::format("a process, such as gba-fake-device, behind the socket {}",
                               error ? target.socket : behind.string())};
}

Findings with_kind(const Target& target, Findings findings) {
  findings.insert(findings.begin(), kind_of(target));
  return findings;
}

Findings check_target(const Target& target) {
  switch (target.kind) {
    case Target::Kind::kSocket:
      return with_kind(target, check_socket(target.socket));
    case Target::Kind::kFunction:
      return with_kind(target, check_function(target.function));
    case Target::Kind::kNothing:
      break;
  }
  return {{.verdict = Verdict::kProblem, .name = "device", .found = target.problem, .fix = target.fix}};
}

Finding* find_problem(Findings& findings, const std::string& name) {
  const auto found = std::find_if(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.verdict == Verdict::kProblem && finding.name == name;
  });
  return found == findings.end() ? nullptr : &*found;
}

int check(const Invocation& invocation) {
  const auto target = find_target(invocation.device);
  if (!target) {
    return report(invocation, target.error());
  }
  return report(invocation, target->path, check_device(*target));
}

}  // namespace

Findings check_device(const Target& target) {
  Findings findings = check_target(target);
  // In a test's tree of devices there is nothing to open.
  const bool can_be_opened = is_this_machine() || target.kind == Target::Kind::kSocket;
  Finding* const memlock = find_problem(findings, kMemlock);
  if (can_be_opened && problems_in(findings) == (memlock == nullptr ? 0 : 1)) {
    const Finding opens = check_opens(target.path);
    // libgba needs less if the device has memory of its own for release flags.
    if (memlock != nullptr && opens.verdict == Verdict::kOk) {
      memlock->verdict = Verdict::kNote;
    }
    findings.push_back(opens);
  }
  return findings;
}

void declare_check(CLI::App& app, Invocation& invocation) {
  auto command = declare(app, invocation, "check", "can a device be opened, and if not, what fixes it",
                         [&invocation] { return check(invocation); });
  take_device(command, invocation);
}

}  // namespace tool
