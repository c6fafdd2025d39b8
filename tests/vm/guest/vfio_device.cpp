// SPDX-License-Identifier: Apache-2.0
#include "tests/vm/guest/vfio_device.hpp"

#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "tests/vm/guest/require.hpp"

namespace guest {
namespace {

base::UniqueFd open_file(const std::string& path) {
  return base::UniqueFd(require_call(::open(path.c_str(), O_RDWR | O_CLOEXEC), "open " + path));
}

}  // namespace

VfioDevice::VfioDevice(const std::string& group, const std::string& address)
    : container_(open_file("/dev/vfio/vfio")), group_(open_file("/dev/vfio/" + group)) {
  vfio_group_status status{.argsz = sizeof status, .flags = 0};
  require_call(::ioctl(group_.get(), VFIO_GROUP_GET_STATUS, &status), "VFIO_GROUP_GET_STATUS");
  require((status.flags & VFIO_GROUP_FLAGS_VIABLE) != 0, "the IOMMU group is not viable");
  const int container = container_.get();
  require_call(::ioctl(group_.get(), VFIO_GROUP_SET_CONTAINER, &container), "VFIO_GROUP_SET_CONTAINER");
  require_call(::ioctl(container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU), "VFIO_SET_IOMMU");
  device_ = base::UniqueFd(
      require_call(::ioctl(group_.get(), VFIO_GROUP_GET_DEVICE_FD, address.c_str()), "VFIO_GROUP_GET_DEVICE_FD"));
}

std::uint32_t VfioDevice::device_flags() const {
  vfio_device_info info{};
  info.argsz = sizeof info;
  require_call(::ioctl(device_.get(), VFIO_DEVICE_GET_INFO, &info), "VFIO_DEVICE_GET_INFO");
  return info.flags;
}

vfio_region_info VfioDevice::region(unsigned index) const {
  vfio_region_info info{};
  info.argsz = sizeof info;
  info.index = index;
  require_call(::ioctl(device_.get(), VFIO_DEVICE_GET_REGION_INFO, &info), "VFIO_DEVICE_GET_REGION_INFO");
  return info;
}

std::uint64_t VfioDevice::region_size(unsigned index) const {
  return region(index).size;
}

unsigned VfioDevice::interrupts(unsigned index) const {
  vfio_irq_info info{.argsz = sizeof info, .flags = 0, .index = index, .count = 0};
  require_call(::ioctl(device_.get(), VFIO_DEVICE_GET_IRQ_INFO, &info), "VFIO_DEVICE_GET_IRQ_INFO");
  return info.count;
}

base::Mapping VfioDevice::map_region(unsigned index) const {
  const auto info = region(index);
  require((info.flags & VFIO_REGION_INFO_FLAG_MMAP) != 0, "region " + std::to_string(index) + " cannot be mapped");
  return require_result(gba::map_shared(device_.get(), info.offset, info.size, "region " + std::to_string(index)));
}

void VfioDevice::set_bus_master(bool on) const {
  const auto at = static_cast<off_t>(region(VFIO_PCI_CONFIG_REGION_INDEX).offset + PCI_COMMAND);
  std::uint16_t command = 0;
  require(::pread(device_.get(), &command, sizeof command, at) == sizeof command, "cannot read COMMAND");
  command = static_cast<std::uint16_t>(on ? command | PCI_COMMAND_MASTER : command & ~PCI_COMMAND_MASTER);
  require(::pwrite(device_.get(), &command, sizeof command, at) == sizeof command, "cannot write COMMAND");
}

void VfioDevice::map_dma(std::uint64_t iova, std::span<std::byte> memory) const {
  vfio_iommu_type1_dma_map map{.argsz = sizeof map,
                               .flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
                               .vaddr = reinterpret_cast<std::uintptr_t>(memory.data()),
                               .iova = iova,
                               .size = memory.size()};
  require_call(::ioctl(container_.get(), VFIO_IOMMU_MAP_DMA, &map), "VFIO_IOMMU_MAP_DMA");
}

void VfioDevice::unmap_dma(std::uint64_t iova, std::size_t size) const {
  vfio_iommu_type1_dma_unmap unmap{};
  unmap.argsz = sizeof unmap;
  unmap.iova = iova;
  unmap.size = size;
  require_call(::ioctl(container_.get(), VFIO_IOMMU_UNMAP_DMA, &unmap), "VFIO_IOMMU_UNMAP_DMA");
}

void VfioDevice::arm(std::span<const int> eventfds) const {
  std::vector<std::byte> message(sizeof(vfio_irq_set) + eventfds.size_bytes());
  vfio_irq_set set{};
  set.argsz = static_cast<std::uint32_t>(message.size());
  set.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
  set.index = VFIO_PCI_MSIX_IRQ_INDEX;
  set.count = static_cast<std::uint32_t>(eventfds.size());
  std::memcpy(message.data(), &set, sizeof set);
  std::memcpy(message.data() + sizeof set, eventfds.data(), eventfds.size_bytes());
  require_call(::ioctl(device_.get(), VFIO_DEVICE_SET_IRQS, message.data()), "VFIO_DEVICE_SET_IRQS");
}

void VfioDevice::reset() const {
  require_call(::ioctl(device_.get(), VFIO_DEVICE_RESET), "VFIO_DEVICE_RESET");
}

}  // namespace guest
