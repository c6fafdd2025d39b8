// SPDX-License-Identifier: Apache-2.0
// The parts of gba report that the kernel tells.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/klog.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/size_text.hpp"
#include "driver/tool/bug_report.hpp"
#include "driver/tool/system.hpp"
#include "driver/tool/target.hpp"

namespace tool {
namespace {

/// The whole file; says so if it cannot be read.
std::string file_text(BugReport& report, const std::string& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) {
    report.could_not_read(file, std::strerror(errno));
    return "";
  }
  return text.str();
}

std::string system_name() {
  std::ifstream in("/etc/os-release");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("PRETTY_NAME=")) {
      return line.substr(line.find('=') + 1);
    }
  }
  return "unknown";
}

std::string versions() {
  utsname kernel{};
  ::uname(&kernel);
  return fmt::format("libgba {}\nkernel {} {} {}\nsystem {}\n", gba_version(), kernel.release, kernel.version,
                     kernel.machine, system_name());
}

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) {
      return line.substr(line.find(':') + 2);
    }
  }
  return "unknown";
}

std::string machine() {
  const auto free_huge_pages = first_line(sys_path("kernel/mm/hugepages/hugepages-2048kB/free_hugepages"));
  return fmt::format("processors {} ({})\nNUMA nodes {}\npage size {}\nfree huge pages of 2 MiB {}\n",
                     std::thread::hardware_concurrency(), processor_name(),
                     first_line("/sys/devices/system/node/online").value_or("unknown"), ::sysconf(_SC_PAGESIZE),
                     free_huge_pages.value_or("unknown"));
}

std::string module_parameter(const std::string& name) {
  return fmt::format("{} {}\n", name, first_line(sys_path("module/" + name)).value_or("-"));
}

std::string iommu() {
  const auto units = names_in(sys_path("class/iommu"));
  std::string text =
      fmt::format("units {}\ngroups {}\n", units.empty() ? "none" : fmt::format("{}", fmt::join(units, " ")),
                  names_in(sys_path("kernel/iommu_groups")).size());
  text +=
      fmt::format("vfio-pci {}\niommufd {}\n", exists(sys_path("bus/pci/drivers/vfio-pci")) ? "loaded" : "not loaded",
                  exists(dev_path("iommu")) ? "available" : "not available");
  for (const char* name : {"vfio/parameters/enable_unsafe_noiommu_mode", "vfio_iommu_type1/parameters/dma_entry_limit",
                           "vfio_pci/parameters/enable_sriov"}) {
    text += module_parameter(name);
  }
  // Not the whole line: it may have secrets.
  std::istringstream words(first_line("/proc/cmdline").value_or(""));
  for (std::string word; words >> word;) {
    if (word.find("iommu") != std::string::npos || word.starts_with("pci=") || word.starts_with("vfio")) {
      text += "kernel option " + word + "\n";
    }
  }
  return text;
}

std::string limits() {
  constexpr std::pair<const char*, __rlimit_resource> kLimits[] = {{"locked memory", RLIMIT_MEMLOCK},
                                                                   {"open files", RLIMIT_NOFILE},
                                                                   {"processes", RLIMIT_NPROC},
                                                                   {"address space", RLIMIT_AS},
                                                                   {"core files", RLIMIT_CORE}};
  std::string text;
  for (const auto& [name, resource] : kLimits) {
    rlimit limit{};
    ::getrlimit(resource, &limit);
    const auto shown = [](rlim_t value) { return value == RLIM_INFINITY ? "unlimited" : fmt::format("{}", value); };
    text += fmt::format("{} {} (up to {})\n", name, shown(limit.rlim_cur), shown(limit.rlim_max));
  }
  return text;
}

/// The variables that this project and its transports read. Values that are secrets are not shown.
std::string environment() {
  constexpr std::array<std::string_view, 5> kPrefixes{"GBA_", "SHMEM_", "SMA_", "OSHRUN_", "UCX_"};
  constexpr std::array<std::string_view, 6> kSecrets{"SECRET", "TOKEN", "KEY", "PASS", "CREDENTIAL", "COOKIE"};
  std::vector<std::string> lines;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view line = *entry;
    const std::string_view name = line.substr(0, line.find('='));
    const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
    const auto has = [&](std::string_view word) { return name.find(word) != std::string_view::npos; };
    if (std::any_of(kPrefixes.begin(), kPrefixes.end(), begins)) {
      const bool secret = std::any_of(kSecrets.begin(), kSecrets.end(), has);
      lines.push_back(secret ? fmt::format("{} is set (not shown)\n", name) : fmt::format("{}\n", line));
    }
  }
  std::sort(lines.begin(), lines.end());
  return lines.empty() ? "no variable is set\n" : fmt::format("{}", fmt::join(lines, ""));
}

/// The kernel's messages on `wanted`.
void add_kernel_messages(BugReport& report, const std::regex& wanted) {
  constexpr int kReadAll = 3;
  constexpr std::size_t kMost = 200;
  std::vector<char> buffer(std::size_t{1} << 20);
  const int size = ::klogctl(kReadAll, buffer.data(), static_cast<int>(buffer.size()));
  if (size < 0) {
    return report.could_not_read("kernel messages",
                                 fmt::format("{} (as root: dmesg shows them)", std::strerror(errno)));
  }
  std::istringstream in(std::string(buffer.data(), static_cast<std::size_t>(size)));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (std::regex_search(line, wanted)) {
      lines.push_back(line + "\n");
    }
  }
  const std::size_t first = lines.size() - std::min(lines.size(), kMost);
  std::string text;
  for (std::size_t i = first; i < lines.size(); ++i) {
    text += lines[i];
  }
  report.add("kernel messages", text.empty() ? "none on VFIO, IOMMU or PCI errors\n" : text);
}

}  // namespace

void add_system(BugReport& report) {
  report.add("versions", versions());
  report.add("machine", machine());
  report.add("IOMMU and VFIO", iommu());
  report.add("limits", limits());
  report.add("environment", environment());
}

void add_errors(BugReport& report) {
  std::string wanted = "vfio|iommu|DMAR|AMD-Vi|AER|gba";
  if (const auto functions = find_functions()) {
    for (const auto& function : *functions) {
      wanted += "|" + function.address;
      for (const char* kind : {"aer_dev_fatal", "aer_dev_nonfatal", "aer_dev_correctable"}) {
        report.add(fmt::format("{} of {}", kind, function.address),
                   file_text(report, sys_path("bus/pci/devices/" + function.address + "/" + kind)));
      }
    }
  }
  add_kernel_messages(report, std::regex(wanted, std::regex::icase));
}

}  // namespace tool
