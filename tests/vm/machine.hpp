// SPDX-License-Identifier: Apache-2.0
// A virtual machine with the device.
#pragma once

#include <fstream>
#include <optional>
#include <string>

#include "tests/support/process.hpp"

namespace vm {

/// Where scripts/fetch-vm.sh puts QEMU and kernels: $GBA_VM_CACHE, else ~/.cache/gba-vm.
std::string cache_folder();

/// QEMU without hardware virtualization, with two functions of the device at the vfio-user socket `device` and an IOMMU
/// that translates for functions bound to VFIO. It boots the cache's `kernel` (a Debian suite) into `initramfs`, ends
/// when the guest switches off or panics, and is killed with the object.
class Machine {
 public:
  Machine(const std::string& kernel, const std::string& initramfs, const std::string& device);

  /// The guest's console output so far.
  [[nodiscard]] std::string console() const;
  /// Asks the guest to release its second function.
  void unplug_second_function();
  /// Waits for a complete line of the guest that begins with `start` and returns the rest of the line. Nothing if it
  /// does not come within `limit` or before the guest ends.
  std::optional<std::string> wait_for_line(const std::string& start, test_support::Seconds limit);
  test_support::Process& process() { return qemu_; }
  /// One line for each message that QEMU has got from the device: "... id 0x0 cmd 0x1 size 0x8d flags 0x1".
  [[nodiscard]] std::string received_messages() const;

 private:
  test_support::TempDir dir_;
  std::fstream monitor_;
  test_support::Process qemu_;
};

}  // namespace vm
