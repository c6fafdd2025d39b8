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

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// A function with more properties, as QEMU wants to be told of it.
std::string function(const std::string& device, const std::string& properties) {
  return R"({"driver":"vfio-user-pci",)" + properties + R"(,"socket":{"path":")" + device + R"(","type":"unix"}})";
}

/// Another path to the socket. QEMU keeps eventfds under the name of a function, which is its socket's path, and the
/// vector: of two functions with one path the later one would be given the interrupts of the earlier.
std::string another_path(const std::string& socket, const test_support::TempDir& dir) {
  const auto path = dir.file("second.sock");
  std::filesystem::create_symlink(socket, path);
  return path;
}

/// What QEMU's monitor reads; it answers into a file.
std::fstream make_monitor(const std::string& path) {
  const auto commands = path + ".in";
  if (::mkfifo(commands.c_str(), 0600) != 0) {
    throw std::system_error(errno, std::generic_category(), "mkfifo");
  }
  std::ofstream(path + ".out").flush();
  return std::fstream(commands);  // to read, too: otherwise it would wait for QEMU
}

std::vector<std::string> command_line(const std::string& kernel, const std::string& initramfs,
                                      const std::string& device, const test_support::TempDir& dir) {
  const std::string qemu = cache_folder() + "/qemu/usr";
  const std::string libraries = qemu + "/lib/x86_64-linux-gnu";
  return {
      // The libraries are those of a newer Debian: QEMU is started by their own loader.
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
      // With one processor QEMU makes plain loads and stores of the guest's locked instructions, which then order
      // nothing: not enough for uapi rule 14.
      "-smp",
      "2",
      "-m",
      "256M",
      // The device can only reach memory that QEMU can share.
      "-object",
      "memory-backend-memfd,id=ram,size=256M,share=on",
      "-device",
      "intel-iommu,intremap=on,caching-mode=on",
      "-device",
      function(device, R"("bus":"pcie.0")"),
      // A slot of its own, and so an IOMMU group of its own. It can be unplugged as far as the guest sees. QEMU itself
      // must not take it out, which it would if it saw to the slot by ACPI or had switched it off: it aborts when a
      // vfio-user-pci function ends (11.1: "memory_region_del_subregion: Assertion `subregion->container == mr'
      // failed").
      "-global",
      "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off",
      "-device",
      "pcie-root-port,id=second_slot,chassis=1,slot=1,power_controller_present=off",
      "-device",
      function(another_path(device, dir), R"("bus":"second_slot","id":")" + std::string(kSecondFunction) + R"(")"),
      "-chardev",
      "pipe,id=monitor,path=" + dir.file(kMonitor),
      "-monitor",
      "chardev:monitor",
      // Not stdio: that would read the terminal of the test, and QEMU's complaints would cut lines in two.
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
      // A kernel that measures its timer panics where the host has no time for it; what a panic says early is printed.
      // A small kernel would not see to the slot for itself.
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
