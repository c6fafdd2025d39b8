// SPDX-License-Identifier: Apache-2.0
// The checks that the guest makes, and how it reports them to the host.
#pragma once

#include <functional>
#include <string>

#include "tests/vm/guest/port.hpp"

namespace guest {

/// Runs checks, each with one line on the console.
class Checks {
 public:
  /// The check fails if `body` throws.
  void run(const std::string& name, const std::function<void()>& body);
  [[nodiscard]] bool all_passed() const { return all_passed_; }

 private:
  bool all_passed_ = true;
};

/// Asks the host to be the last member of the group.
void invite_host(const std::string& name, const Group& group);
/// Asks the host to unplug the second function.
void ask_to_unplug();

/// The device as the guest's kernel sees it: sysfs, BARs mapped from there, DMA to physical addresses.
void check_through_sysfs(Checks& checks);
/// The device bound to VFIO: DMA through the IOMMU, interrupts, reset.
void check_through_vfio(Checks& checks);
/// libgba, alone; binds both functions to vfio-pci.
void check_through_libgba(Checks& checks);
/// libgba in two processes, each with one of the functions.
void check_two_functions(Checks& checks);
/// libgba without privileges, with both functions.
void check_ordinary_user(Checks& checks);
/// Two processes again; the second one's function is unplugged while it uses it, and does not come back.
void check_unplugging(Checks& checks);

}  // namespace guest
