// SPDX-License-Identifier: Apache-2.0
#include <linux/pci_regs.h>
#include <sched.h>

#include <chrono>

#include "tests/vm/console.hpp"
#include "tests/vm/guest/checks.hpp"
#include "tests/vm/guest/flag_memory.hpp"
#include "tests/vm/guest/pci_function.hpp"
#include "tests/vm/guest/require.hpp"

namespace guest {
namespace {

void check_ids(const PciFunction& function) {
  require_equal(function.number("vendor"), GBA_PCI_VENDOR_ID, "the vendor");
  require_equal(function.number("device"), GBA_PCI_DEVICE_ID, "the device");
  require_equal(function.number("class"), GBA_PCI_CLASS, "the class");
}

void check_bar_sizes(const PciFunction& function) {
  require_equal(function.bar_size(GBA_REGION_CONTROL), GBA_BAR0_SIZE, "the size of BAR0");
  require_equal(function.bar_size(GBA_REGION_DOORBELLS), GBA_BAR2_SIZE, "the size of BAR2");
  require_equal(function.bar_size(GBA_REGION_FLAGS), GBA_BAR4_SIZE, "the size of BAR4");
}

void check_msix(const PciFunction& function) {
  const unsigned at = function.find_capability(PCI_CAP_ID_MSIX);
  require(at != 0, "there is no MSI-X capability");
  const auto flags = function.read_config(at + PCI_MSIX_FLAGS, 2);
  require_equal((flags & PCI_MSIX_FLAGS_QSIZE) + 1, GBA_MSIX_VECTORS, "the number of vectors");
}

Port open_port(const PciFunction& function) {
  const auto command = function.read_config(PCI_COMMAND, 2);
  function.write_config(PCI_COMMAND, command | PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 2);
  return Port(function.map_bar(GBA_REGION_CONTROL), function.map_bar(GBA_REGION_DOORBELLS),
              function.map_bar(GBA_REGION_FLAGS));
}

void check_registers(const Port& port) {
  require_equal(port.read_half(GBA_REG_MAGIC), GBA_MAGIC_VALUE, "MAGIC");
  require_equal(GBA_FIELD_GET(GBA_VERSION_MAJOR_FIELD, port.read_half(GBA_REG_VERSION)), GBA_VERSION_MAJOR,
                "the major version");
  const auto caps = port.read(GBA_REG_CAPS);
  require_equal(GBA_FIELD_GET(GBA_CAPS_GROUPS, caps), GBA_MAX_GROUPS, "the number of groups");
  require_equal(GBA_FIELD_GET(GBA_CAPS_MEMBERS, caps), GBA_MAX_MEMBERS, "the number of members");
}

void check_bar_flag_barriers(Port& port) {
  const auto group = port.make_group(1);
  port.join(group, GBA_RELEASE_ADDR_BAR_FLAGS);
  port.run_barriers(group, port.bar_flag(group), vm::kRounds);
  port.give_back(group);
}

void wait_until_asleep(const Port& port) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!port.device_sleeps()) {
    require(std::chrono::steady_clock::now() < end, "an idle device does not set WAKEUP");
    ::sched_yield();
  }
}

void check_kick(Port& port) {
  const auto group = port.make_group(1);
  port.join(group, GBA_RELEASE_ADDR_BAR_FLAGS);
  const unsigned before = port.kicks();
  wait_until_asleep(port);
  port.arrive(group, 1);
  require(port.kicks() == before + 1, "the device sleeps and the arrival did not kick it");
  port.await(group, port.bar_flag(group), 1);
  port.give_back(group);
}

void check_dma_barriers(Port& port) {
  const FlagMemory page;
  const auto group = port.make_group(1);
  port.join(group, page.physical_address());
  port.run_barriers(group, page.flag(), vm::kRounds);
  require_equal(port.bar_flag(group).load(), 0, "the BAR4 flag that is not in use");
  port.give_back(group);
}

void check_barriers_with_host(Port& port) {
  const FlagMemory page;
  const auto group = port.make_group(2);
  port.join(group, page.physical_address());
  invite_host(vm::kSharedGroup, group);
  port.run_barriers(group, page.flag(), vm::kRounds);
}

}  // namespace

void check_through_sysfs(Checks& checks) {
  const auto function = PciFunction::find();
  checks.run("pci_ids", [&] { check_ids(function); });
  checks.run("bar_sizes", [&] { check_bar_sizes(function); });
  checks.run("msix_capability", [&] { check_msix(function); });
  auto port = open_port(function);
  checks.run("registers", [&] { check_registers(port); });
  checks.run("bar_flag_barriers", [&] { check_bar_flag_barriers(port); });
  checks.run("kick_wakes_the_device", [&] { check_kick(port); });
  checks.run("dma_barriers", [&] { check_dma_barriers(port); });
  checks.run("barriers_with_the_host", [&] { check_barriers_with_host(port); });
}

}  // namespace guest
