// SPDX-License-Identifier: Apache-2.0
// A virtual machine that is given the device.
#pragma once

#include <fstream>
#include <optional>
#include <string>

#include "tests/support/process.hpp"

namespace vm {

/// Where scripts/fetch-vm.sh puts QEMU and kernels: $GBA_VM_CACHE, else ~/.cache/gba-vm.
std::string cache_folder();

/// QEMU, emulating everything, with two functions of what is behind the vfio-user socket `device` and an IOMMU that
/// translates for whom VFIO wants it. It boots the cache's `kernel` (a Debian suite) into `initramfs`, ends when the
/// guest switches off or panics, and is killed with the object.
class Machine {
 public:
  Machine(const std::string& kernel, const std::string& initramfs, const std::string& device);

  /// What the guest has written on its console so far.
  [[nodiscard]] std::string console() const;
  /// Asks the guest to let go of its second function.
  void unplug_second_function();
  /// The rest of the guest's line that begins with `start`, once it is whole; nothing if it does not come within
  /// `limit` or the guest has ended without it.
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
