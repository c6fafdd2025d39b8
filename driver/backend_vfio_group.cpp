// SPDX-License-Identifier: Apache-2.0
#include "driver/backend_vfio.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <limits>

#include "driver/vfio_kernel.hpp"

namespace gba {

namespace {

constexpr const char* kBusy = "another process has it, or a device of its IOMMU group, open";

/// An argument that the kernel takes as a number.
void* number(std::uintptr_t value) {
  return reinterpret_cast<void*>(value);  // NOLINT(performance-no-int-to-ptr)
}

std::string not_viable(const PciSysfs& sysfs, const std::string& address) {
  const std::string others = sysfs.in_the_way_of(address);
  return fmt::format(
      "its IOMMU group {} cannot be used: {}; bind all devices of the group to vfio-pci, or unbind them (echo ADDRESS "
      "> "
      "/sys/bus/pci/devices/ADDRESS/driver/unbind)",
      sysfs.iommu_group(address),
      others.empty() ? "another device in it has a driver of its own" : others + " is in it");
}

std::vector<IovaRange> ranges_in(std::span<const std::byte> capability) {
  std::vector<IovaRange> ranges;
  constexpr std::size_t kRanges = sizeof(vfio_iommu_type1_info_cap_iova_range);
  const auto count =
      VfioInfo::at<std::uint32_t>(capability, offsetof(vfio_iommu_type1_info_cap_iova_range, nr_iovas)).value_or(0);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto range = VfioInfo::at<vfio_iova_range>(capability, kRanges + i * sizeof(vfio_iova_range));
    if (!range) {
      break;
    }
    ranges.push_back({.first = range->start, .last = range->end});
  }
  return ranges;
}

}  // namespace

Result<std::unique_ptr<Backend>> VfioGroupBackend::open(SystemCalls& system, const PciSysfs& sysfs,
                                                        const VfioNodes& nodes) {
  VfioContexts alone;
  return open(system, sysfs, nodes, alone);
}

Result<std::unique_ptr<Backend>> VfioGroupBackend::open(SystemCalls& system, const PciSysfs& sysfs,
                                                        const VfioNodes& nodes, VfioContexts& contexts) {
  const std::string tried = fmt::format("gba: cannot open {} ({})", nodes.address, nodes.device);
  std::unique_ptr<VfioGroupBackend> backend(new VfioGroupBackend(system, sysfs, nodes.address));
  auto context = contexts.find(nodes.device, [&](VfioContext& fresh) -> Result<void> {
    if (auto done = backend->open_container(fresh, nodes.iommu, tried); !done) {
      return done;
    }
    return backend->open_group(fresh, sysfs, nodes, tried);
  });
  if (!context) {
    return context.error();
  }
  backend->context_ = *std::move(context);
  if (auto done = backend->open_device(sysfs, nodes, tried); !done) {
    return done.error();
  }
  return backend;
}

Result<void> VfioGroupBackend::open_container(VfioContext& context, const std::string& node, const std::string& tried) {
  auto opened = open_node(system(), node, tried, "modprobe vfio-pci loads VFIO");
  if (!opened) {
    return opened.error();
  }
  context.iommu = *std::move(opened);
  const int version = system().ioctl(context.iommu.get(), VFIO_GET_API_VERSION, nullptr);
  if (version < 0) {
    return fail_call(errno, tried, "VFIO_GET_API_VERSION");
  }
  if (version != VFIO_API_VERSION) {
    return fail(std::errc::protocol_error,
                fmt::format("{}: the kernel has version {} of VFIO, this library knows version 0", tried, version));
  }
  const int type1 = system().ioctl(context.iommu.get(), VFIO_CHECK_EXTENSION, number(VFIO_TYPE1v2_IOMMU));
  if (type1 < 0) {
    return fail_call(errno, tried, "VFIO_CHECK_EXTENSION");
  }
  if (type1 > 0) {
    return {};
  }
  const int none = system().ioctl(context.iommu.get(), VFIO_CHECK_EXTENSION, number(VFIO_NOIOMMU_IOMMU));
  return fail(
      std::errc::operation_not_supported,
      tried + (none > 0 ? ": VFIO is in no-IOMMU mode, where a device may write to all memory: refused. Turn the "
                          "IOMMU on (firmware setup; kernel parameter intel_iommu=on)"
                        : ": VFIO has no IOMMU of type 1 (modprobe vfio_iommu_type1)"));
}

Result<void> VfioGroupBackend::open_group(VfioContext& context, const PciSysfs& sysfs, const VfioNodes& nodes,
                                          const std::string& tried) {
  auto opened = open_node(system(), nodes.device, tried, "is the device bound to vfio-pci?");
  if (!opened) {
    return opened.error();
  }
  context.group = *std::move(opened);
  vfio_group_status status{.argsz = sizeof(status), .flags = 0};
  if (system().ioctl(context.group.get(), VFIO_GROUP_GET_STATUS, &status) < 0) {
    return fail_call(errno, tried, "VFIO_GROUP_GET_STATUS");
  }
  if ((status.flags & VFIO_GROUP_FLAGS_VIABLE) == 0) {
    return fail(std::errc::operation_not_permitted, tried + ": " + not_viable(sysfs, nodes.address));
  }
  if ((status.flags & VFIO_GROUP_FLAGS_CONTAINER_SET) != 0) {
    return fail_call(EBUSY, tried, "its group", kBusy);
  }
  int container = context.iommu.get();
  if (system().ioctl(context.group.get(), VFIO_GROUP_SET_CONTAINER, &container) < 0) {
    return fail_call(errno, tried, "VFIO_GROUP_SET_CONTAINER", errno == EBUSY ? kBusy : "");
  }
  if (system().ioctl(context.iommu.get(), VFIO_SET_IOMMU, number(VFIO_TYPE1v2_IOMMU)) < 0) {
    // The kernel logs why, and names the module parameter that permits it all the same.
    return fail_call(errno, tried, "VFIO_SET_IOMMU",
                     errno == EPERM ? "the platform cannot remap interrupts: see the kernel's log" : "");
  }
  return {};
}

Result<void> VfioGroupBackend::open_device(const PciSysfs& sysfs, const VfioNodes& nodes, const std::string& tried) {
  std::string name = nodes.address;
  if (!nodes.token.text.empty()) {
    name += " vf_token=" + nodes.token.text;
  }
  const int fd = system().ioctl(context_->group.get(), VFIO_GROUP_GET_DEVICE_FD, name.data());
  if (fd < 0) {
    const int error = errno;  // looking into sysfs changes it
    return fail_call(error, tried, "VFIO_GROUP_GET_DEVICE_FD",
                     error == EBUSY    ? kBusy
                     : error == EACCES ? token_advice(sysfs, nodes)
                                       : "is the device bound to vfio-pci?");
  }
  return set_up(SystemFd::of_device(system(), fd), tried);
}

void VfioGroupBackend::on_loss() {
  VfioDeviceFd::on_loss();
  if (context_ != nullptr && !left_.exchange(true)) {
    context_->leave([this] {
      release(context_->group);
      release(context_->iommu);
    });
  }
}

VfioGroupBackend::~VfioGroupBackend() {
  if (context_ != nullptr && !left_.exchange(true)) {
    context_->leave([] {});  // its descriptors go with it
  }
}

Result<DmaLimits> VfioGroupBackend::dma_limits() {
  if (auto there = check_there(); !there) {
    return there.error();
  }
  vfio_iommu_type1_info asked{};
  const auto info =
      vfio_info(system(), context_->iommu.get(), VFIO_IOMMU_GET_INFO, std::as_bytes(std::span(&asked, 1)));
  if (!info) {
    return failed(errno, "look up what the IOMMU can map", "VFIO_IOMMU_GET_INFO");
  }
  const auto head = info->head<vfio_iommu_type1_info>();
  DmaLimits limits;
  limits.page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if ((head.flags & VFIO_IOMMU_INFO_PGSIZES) != 0 && head.iova_pgsizes != 0) {
    limits.page = std::max(limits.page, UINT64_C(1) << std::countr_zero(head.iova_pgsizes));
  }
  // A kernel before 5.4 does not say what it can map.
  if ((head.flags & VFIO_IOMMU_INFO_CAPS) == 0) {
    return limits;
  }
  const auto ranges = info->capability(head.cap_offset, VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE);
  if (!ranges.empty()) {
    limits.ranges = ranges_in(ranges);
  }
  return limits;
}

Result<void> VfioGroupBackend::dma_map(const DmaBuffer& buffer, std::uint64_t iova) {
  if (auto there = check_there(); !there) {
    return there;
  }
  const std::size_t size = buffer.memory.size();
  const std::string what = fmt::format("map {} bytes of memory for it", size);
  if (auto room = memory_lock().reserve(size, cannot(what)); !room) {
    return room;
  }
  vfio_iommu_type1_dma_map map{.argsz = sizeof(map),
                               .flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
                               .vaddr = reinterpret_cast<std::uintptr_t>(buffer.memory.data()),
                               .iova = iova,
                               .size = size};
  if (system().ioctl(context_->iommu.get(), VFIO_IOMMU_MAP_DMA, &map) >= 0) {
    return {};
  }
  const int error = errno;
  const std::string others = "what else the process has locked";
  auto failure =
      failed(error, what, "VFIO_IOMMU_MAP_DMA", error == ENOMEM ? memory_lock().advice(size, others) : std::string());
  memory_lock().release(size);
  return failure;
}

Result<void> VfioGroupBackend::dma_unmap(std::uint64_t iova, std::size_t size) {
  // For a lost device too: the memory is ours again.
  if (auto ours = check_not_forked(); !ours) {
    return ours;
  }
  const std::string what = fmt::format("unmap {} bytes of memory", size);
  vfio_iommu_type1_dma_unmap unmap{};
  unmap.argsz = sizeof(unmap);
  unmap.iova = iova;
  unmap.size = size;
  const int done = system().ioctl(context_->iommu.get(), VFIO_IOMMU_UNMAP_DMA, &unmap);
  if (done < 0 && !context_->released()) {
    return failed(errno, what, "VFIO_IOMMU_UNMAP_DMA");
  }
  // A container that has been released maps nothing any more.
  if (done >= 0 && unmap.size != size) {
    return failed(EINVAL, what, "VFIO_IOMMU_UNMAP_DMA", fmt::format("{} were mapped there", unmap.size));
  }
  memory_lock().release(size);
  return {};
}

}  // namespace gba
