// SPDX-License-Identifier: Apache-2.0
#include "tests/vm/machine.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <vector>

namespace vm {
namespace {

constexpr test_support::Seconds kPoll{0.02};
constexpr const char* kConsole = "console";
constexpr const char* kTrace = "trace";
constexpr const char* kMonitor = "monitor";
constexpr const char* kSecondFunction = "second";
// For the libraries of Open MPI; what a guest does not use, it does not take from the host.
constexpr const char* kMemory = "512M";

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// A function with these properties, in the form of QEMU's command line.
std::string function(const std::string& device, const std::string& properties) {
  return R"({"driver":"vfio-user-pci",)" + properties + R"(,"socket":{"path":")" + device + R"(","type":"unix"}})";
}

/// Another path to the socket. QEMU stores eventfds by the function's name, which is the path of its socket, and the
/// vector: of two functions with the same path, the later one would get the interrupts of the earlier.
std::string another_path(const std::string& socket, const test_support::TempDir& dir) {
  auto path = dir.file("second.sock");
  std::filesystem::create_symlink(socket, path);
  return path;
}

/// The input of QEMU's monitor, which answers into a file.
std::fstream make_monitor(const std::string& path) {
  const auto commands = path + ".in";
  if (::mkfifo(commands.c_str(), 0600) != 0) {
    throw std::system_error(errno, std::generic_category(), "mkfifo");
  }
  std::ofstream(path + ".out").flush();
  return std::fstream(commands);  // also for reading: otherwise it would wait for QEMU
}

std::vector<std::string> command_line(const std::string& kernel, const std::string& initramfs,
                                      const std::string& device, const test_support::TempDir& dir) {
  const std::string qemu = cache_folder() + "/qemu/usr";
  const std::string libraries = qemu + "/lib/x86_64-linux-gnu";
  return {
      // The libraries are from a newer Debian, so their own loader starts QEMU.
      libraries + "/ld-linux-x86-64.so.2",
      "--library-path",
      libraries,
      qemu + "/bin/qemu-system-x86_64",
      "-L",
      qemu + "/share/qemu",
      "-L",
      qemu + "/share/seabios",
      "-no-user-config",
      "-nodefaults",
      "-display",
      "none",
      "-no-reboot",
      "-accel",
      "tcg",
      "-M",
      "q35,kernel-irqchip=split,memory-backend=ram",
      // With one processor QEMU turns the guest's locked instructions into plain loads and stores, which do not order
      // memory accesses as uapi rule 14 needs.
      "-smp",
      "2",
      "-m",
      kMemory,
      // The device can only reach memory that QEMU can share.
      "-object",
      "memory-backend-memfd,id=ram,share=on,size=" + std::string(kMemory),
      "-device",
      "intel-iommu,intremap=on,caching-mode=on",
      "-device",
      function(device, R"("bus":"pcie.0")"),
      // Each function has its own slot, and so its own IOMMU group. For the guest it can be unplugged. QEMU itself must
      // not remove it, as it would if it managed the slot by ACPI or switched it off: QEMU aborts when a vfio-user-pci
      // function ends (11.1: "memory_region_del_subregion: Assertion `subregion->container == mr' failed").
      "-global",
      "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off",
      "-device",
      "pcie-root-port,id=second_slot,chassis=1,slot=1,power_controller_present=off",
      "-device",
      function(another_path(device, dir),
               std::string(R"("bus":"second_slot","id":")").append(kSecondFunction).append("\"")),
      "-chardev",
      "pipe,id=monitor,path=" + dir.file(kMonitor),
      "-monitor",
      "chardev:monitor",
      // Not stdio: that would read the test's terminal, and QEMU's own messages would split lines.
      "-chardev",
      "file,id=console,path=" + dir.file(kConsole),
      "-serial",
      "chardev:console",
      "-trace",
      "vfio_user_recv_hdr",
      "-D",
      dir.file(kTrace),
      "-kernel",
      cache_folder() + "/kernel-" + kernel + "/vmlinuz",
      "-initrd",
      initramfs,
      "-append",
      // no_timer_check: a kernel that checks its timer panics on a busy host. earlyprintk: shows early panics.
      // pcie_ports: a small kernel would not manage the slot by itself otherwise.
      "console=ttyS0 earlyprintk=ttyS0 loglevel=1 panic=-1 no_timer_check intel_iommu=on iommu=pt pcie_ports=native",
  };
}

}  // namespace

std::string cache_folder() {
  const auto folder = from_environment("GBA_VM_CACHE");
  return folder.empty() ? from_environment("HOME") + "/.cache/gba-vm" : folder;
}

Machine::Machine(const std::string& kernel, const std::string& initramfs, const std::string& device)
    : monitor_(make_monitor(dir_.file(kMonitor))), qemu_(command_line(kernel, initramfs, device, dir_)) {}

std::string Machine::console() const {
  return read_file(dir_.file(kConsole));
}

void Machine::unplug_second_function() {
  monitor_ << "device_del " << kSecondFunction << std::endl;
}

std::string Machine::received_messages() const {
  return read_file(dir_.file(kTrace));
}

std::optional<std::string> Machine::wait_for_line(const std::string& start, test_support::Seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  bool ended = false;
  while (true) {
    const auto text = console();
    const auto at = text.find(start);
    const auto line_end = at == std::string::npos ? at : text.find('\r', at);
    if (line_end != std::string::npos) {
      return text.substr(at + start.size(), line_end - at - start.size());
    }
    if (ended || std::chrono::steady_clock::now() >= end) {
      return std::nullopt;
    }
    ended = qemu_.wait(kPoll).has_value();
  }
}

}  // namespace vm
