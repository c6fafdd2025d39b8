// SPDX-License-Identifier: Apache-2.0
#include <linux/vfio.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <vector>

#include "tests/vm/console.hpp"
#include "tests/vm/guest/checks.hpp"
#include "tests/vm/guest/flag_memory.hpp"
#include "tests/vm/guest/pci_function.hpp"
#include "tests/vm/guest/require.hpp"
#include "tests/vm/guest/vfio_device.hpp"

namespace guest {
namespace {

// Neither the page's virtual nor its physical address: only the IOMMU's translation leads to the page.
constexpr std::uint64_t kIova = 0x7000000000;
constexpr std::size_t kLargeSize = std::size_t{8} << 20;

VfioDevice open_device() {
  const auto function = PciFunction::find();
  function.bind("vfio-pci");
  return VfioDevice(function.iommu_group(), function.address());
}

void check_regions(const VfioDevice& device) {
  require_equal(device.region_size(GBA_REGION_CONTROL), GBA_BAR0_SIZE, "the size of region 0");
  require_equal(device.region_size(GBA_REGION_DOORBELLS), GBA_BAR2_SIZE, "the size of region 2");
  require_equal(device.region_size(GBA_REGION_FLAGS), GBA_BAR4_SIZE, "the size of region 4");
  require_equal(device.interrupts(GBA_IRQ_MSIX), GBA_MSIX_VECTORS, "the number of MSI-X vectors");
}

Port open_port(const VfioDevice& device) {
  device.set_bus_master(true);
  return Port(device.map_region(GBA_REGION_CONTROL), device.map_region(GBA_REGION_DOORBELLS),
              device.map_region(GBA_REGION_FLAGS));
}

/// An eventfd for each vector of the device.
class Interrupts {
 public:
  explicit Interrupts(const VfioDevice& device) {
    std::vector<int> numbers;
    for (unsigned vector = 0; vector < GBA_MSIX_VECTORS; ++vector) {
      events_.emplace_back(require_call(::eventfd(0, EFD_CLOEXEC), "eventfd"));
      numbers.push_back(events_.back().get());
    }
    device.arm(numbers);
  }

  void await(unsigned vector) const {
    pollfd event{.fd = events_[vector].get(), .events = POLLIN, .revents = 0};
    require(require_call(::poll(&event, 1, 20000), "poll") == 1,
            "vector " + std::to_string(vector) + " was not raised");
    eventfd_t count = 0;
    require_call(::eventfd_read(event.fd, &count), "read an eventfd");
  }

 private:
  std::vector<base::UniqueFd> events_;
};

void check_bar_flag_barriers(Port& port) {
  const auto group = port.make_group(1);
  port.join(group, GBA_RELEASE_ADDR_BAR_FLAGS);
  port.run_barriers(group, port.bar_flag(group), vm::kRounds);
  port.give_back(group);
}

void check_dma_barriers(Port& port, const FlagMemory& page) {
  const auto group = port.make_group(1);
  port.join(group, kIova);
  port.run_barriers(group, page.flag(), vm::kRounds);
  port.give_back(group);
}

void check_interrupt(Port& port, const FlagMemory& page, const Interrupts& interrupts) {
  const auto group = port.make_group(1);
  port.join(group, kIova);
  for (unsigned round = 1; round <= vm::kRounds; ++round) {
    port.arrive(group, round, /*notify=*/true);
    interrupts.await(group.id);
    require_equal(page.flag().load(), round, "the flag when the interrupt came");  // uapi rule 15
  }
  port.give_back(group);
}

/// Expects that the device cannot store the next release of `group`.
void expect_dma_fault(Port& port, const Group& group, std::uint64_t iova, std::uint64_t sequence) {  // uapi rule 21
  port.arrive(group, sequence);
  port.await_status(group, GBA_STATUS_ERROR);
  require_equal(port.read(GBA_REG_FAULT), GBA_FAULT_BIT(GBA_FAULT_DMA), "FAULT");
  require_equal(port.read(GBA_REG_FAULT_ADDR), iova, "FAULT_ADDR");
  port.write(GBA_REG_FAULT, GBA_FAULT_BIT(GBA_FAULT_DMA));
  port.give_back(group);
}

void check_unmapped_flag(Port& port, const VfioDevice& device, const FlagMemory& page, const Interrupts& interrupts) {
  const auto group = port.make_group(1);
  port.join(group, kIova);
  port.arrive(group, 1);
  port.await(group, page.flag(), 1);
  device.unmap_dma(kIova, page.bytes().size());
  expect_dma_fault(port, group, kIova, 2);
  interrupts.await(GBA_MSIX_ERROR_VECTOR);
  require_equal(page.flag().load(), 1, "the flag that is no longer mapped");
  device.map_dma(kIova, page.bytes());
}

void check_bus_master(Port& port, const VfioDevice& device, const FlagMemory& page) {  // uapi rule 2
  page.flag().store(0);
  const auto group = port.make_group(1);
  port.join(group, kIova);
  port.arrive(group, 1);
  port.await(group, page.flag(), 1);
  device.set_bus_master(false);
  expect_dma_fault(port, group, kIova, 2);
  require_equal(page.flag().load(), 1, "the flag that a function without bus master must not store");
  device.set_bus_master(true);
}

/// Runs barriers with the flag at several places in `memory`, which is mapped at `iova`.
void check_places(Port& port, const FlagMemory& memory, std::uint64_t iova) {
  const std::size_t size = memory.bytes().size();
  for (const std::size_t offset : {std::size_t{0}, size / 2, size - GBA_FLAG_STRIDE}) {
    const auto group = port.make_group(1);
    port.join(group, iova + offset);
    port.run_barriers(group, memory.flag(offset), 3);
    port.give_back(group);
  }
}

// The IOMMU may map in many pages and unmap in one large unit.
void check_large_mapping(Port& port, const VfioDevice& device) {
  constexpr std::uint64_t kLargeIova = 0x200000000;
  const FlagMemory first(kLargeSize);
  device.map_dma(kLargeIova, first.bytes());
  check_places(port, first, kLargeIova);
  device.unmap_dma(kLargeIova, first.bytes().size());
  first.flag().store(0);
  const FlagMemory second(kLargeSize);
  device.map_dma(kLargeIova, second.bytes());
  check_places(port, second, kLargeIova);
  require_equal(first.flag().load(), 0, "the flag in memory that is no longer mapped");
  device.unmap_dma(kLargeIova, second.bytes().size());
  const auto group = port.make_group(1);
  port.join(group, kLargeIova);
  expect_dma_fault(port, group, kLargeIova, 1);
}

// uapi rule 24. The host, the other member, checks the error word.
void check_reset(Port& port, const VfioDevice& device, const FlagMemory& page) {
  require((device.device_flags() & VFIO_DEVICE_FLAGS_RESET) != 0, "the kernel knows no way to reset the function");
  page.flag().store(0);
  const auto group = port.make_group(2);
  port.join(group, kIova);
  invite_host(vm::kResetGroup, group);
  port.arrive(group, 1);
  port.await(group, page.flag(), 1);
  device.reset();
  require_equal(port.read_half(GBA_REG_MAGIC), GBA_MAGIC_VALUE, "MAGIC after a reset");
  require_equal(port.read(GBA_GROUP_BASE(group.id) + GBA_GROUP_STATUS), GBA_STATUS_ERROR, "STATUS after a reset");
  require_equal(page.flag().load(), 1, "the flag of a member that has left");
}

/// All checks of one opening of the device, which is closed with `page` still mapped.
void check_device(Checks& checks, const FlagMemory& page) {
  const auto device = open_device();
  checks.run("vfio_regions", [&] { check_regions(device); });
  auto port = open_port(device);
  device.map_dma(kIova, page.bytes());
  const Interrupts interrupts(device);
  checks.run("vfio_bar_flag_barriers", [&] { check_bar_flag_barriers(port); });
  checks.run("vfio_dma_barriers", [&] { check_dma_barriers(port, page); });
  checks.run("vfio_interrupt", [&] { check_interrupt(port, page, interrupts); });
  checks.run("vfio_unmapped_flag", [&] { check_unmapped_flag(port, device, page, interrupts); });
  checks.run("vfio_bus_master", [&] { check_bus_master(port, device, page); });
  checks.run("vfio_large_mapping", [&] { check_large_mapping(port, device); });
  checks.run("vfio_reset", [&] { check_reset(port, device, page); });
}

// The previous mapping is gone: the same address maps other memory now.
void check_open_again() {
  const auto function = PciFunction::find();
  const VfioDevice device(function.iommu_group(), function.address());
  auto port = open_port(device);
  const FlagMemory page;
  device.map_dma(kIova, page.bytes());
  check_dma_barriers(port, page);
}

}  // namespace

void check_through_vfio(Checks& checks) {
  const FlagMemory page;
  checks.run("vfio_open", [&] { check_device(checks, page); });
  page.flag().store(0);
  checks.run("vfio_open_again", [&] {
    check_open_again();
    require_equal(page.flag().load(), 0, "the flag in memory that was mapped before");
  });
}

}  // namespace guest
