// SPDX-License-Identifier: Apache-2.0
#include "driver/backend_vfio.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "driver/vfio_kernel.hpp"

namespace gba {

namespace {

std::string why_not_bound(int error, const PciSysfs& sysfs, const std::string& address) {
  const std::string others = sysfs.in_the_way_of(address);
  switch (error) {
    case EBUSY:
      if (others.empty()) {
        return "another process has it, or a device of its IOMMU group, open";
      }
      return fmt::format(
          "in its IOMMU group {} there is {}; bind all devices of the group to vfio-pci, or unbind them (echo ADDRESS "
          "> "
          "/sys/bus/pci/devices/ADDRESS/driver/unbind)",
          sysfs.iommu_group(address), others);
    case EPERM:
      return "the platform cannot remap interrupts: see the kernel's log";
    default:
      return "";
  }
}

}  // namespace

Result<std::unique_ptr<Backend>> VfioCdevBackend::open(SystemCalls& system, const PciSysfs& sysfs,
                                                       const VfioNodes& nodes) {
  VfioContexts alone;
  return open(system, sysfs, nodes, alone);
}

Result<std::unique_ptr<Backend>> VfioCdevBackend::open(SystemCalls& system, const PciSysfs& sysfs,
                                                       const VfioNodes& nodes, VfioContexts& contexts) {
  const std::string tried = fmt::format("gba: cannot open {} ({})", nodes.address, nodes.device);
  std::unique_ptr<VfioCdevBackend> backend(new VfioCdevBackend(system, sysfs, nodes.address));
  const std::string group = "iommufd, group " + sysfs.iommu_group(nodes.address);
  auto context = contexts.find(group, [&](VfioContext& fresh) -> Result<void> {
    auto iommufd = open_node(system, nodes.iommu, tried, "modprobe iommufd; or name the device's group in /dev/vfio");
    if (!iommufd) {
      return iommufd.error();
    }
    fresh.iommu = *std::move(iommufd);
    return {};
  });
  if (!context) {
    return context.error();
  }
  backend->context_ = *std::move(context);
  auto device = open_node(system, nodes.device, tried, "is the device bound to vfio-pci?");
  if (!device) {
    return device.error();
  }
  auto attached = backend->attach(device->get(), sysfs, nodes, tried);
  if (!attached) {
    return attached.error();
  }
  if (auto done = backend->set_up(*std::move(device), tried); !done) {
    return done.error();
  }
  return backend;
}

int VfioCdevBackend::bind(int device, const VfioNodes& nodes) {
  VfioBind bind{};
  bind.argsz = sizeof(bind);
  bind.iommufd = context_->iommu.get();
  if (!nodes.token.text.empty()) {
    bind.flags = kVfioBindToken;
    bind.token = reinterpret_cast<std::uintptr_t>(nodes.token.bytes.data());
    if (system().ioctl(device, VFIO_DEVICE_BIND_IOMMUFD, &bind) >= 0) {
      return 0;
    }
    if (errno != EINVAL) {
      return errno;
    }
    // A kernel before 6.18 asks for no token here, and takes none.
    bind.flags = 0;
  }
  return system().ioctl(device, VFIO_DEVICE_BIND_IOMMUFD, &bind) < 0 ? errno : 0;
}

Result<void> VfioCdevBackend::attach(int device, const PciSysfs& sysfs, const VfioNodes& nodes,
                                     const std::string& tried) {
  const std::string& address = nodes.address;
  if (const int failed = bind(device, nodes); failed != 0) {
    // The kernel says EINVAL, not EBUSY, if the same character device is already open.
    const int error = failed == EINVAL ? EBUSY : failed;
    return fail_call(error, tried, "VFIO_DEVICE_BIND_IOMMUFD",
                     error == EACCES ? token_advice(sysfs, nodes) : why_not_bound(error, sysfs, address));
  }
  if (context_->address_space == 0) {
    iommu_ioas_alloc alloc{};
    alloc.size = sizeof(alloc);
    if (system().ioctl(context_->iommu.get(), IOMMU_IOAS_ALLOC, &alloc) < 0) {
      return fail_call(errno, tried, "IOMMU_IOAS_ALLOC");
    }
    context_->address_space = alloc.out_ioas_id;
  }
  vfio_device_attach_iommufd_pt attach{};
  attach.argsz = sizeof(attach);
  attach.pt_id = context_->address_space;
  if (system().ioctl(device, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &attach) < 0) {
    const int error = errno;  // looking into sysfs changes it
    return fail_call(error, tried, "VFIO_DEVICE_ATTACH_IOMMUFD_PT", why_not_bound(error, sysfs, address));
  }
  return {};
}

Result<DmaLimits> VfioCdevBackend::dma_limits() {
  if (auto there = check_there(); !there) {
    return there.error();
  }
  constexpr std::uint32_t kMostRanges = 1U << 16;  // more than any machine has
  std::vector<iommu_iova_range> found(8);
  iommu_ioas_iova_ranges asked{};
  for (;;) {
    asked = {};
    asked.size = sizeof(asked);
    asked.ioas_id = context_->address_space;
    asked.num_iovas = static_cast<std::uint32_t>(found.size());
    asked.allowed_iovas = reinterpret_cast<std::uintptr_t>(found.data());
    if (system().ioctl(context_->iommu.get(), IOMMU_IOAS_IOVA_RANGES, &asked) >= 0) {
      break;
    }
    if (errno != EMSGSIZE || asked.num_iovas <= found.size() || asked.num_iovas > kMostRanges) {
      return failed(errno, "look up what the IOMMU can map", "IOMMU_IOAS_IOVA_RANGES");
    }
    found.resize(asked.num_iovas);
  }
  DmaLimits limits;
  limits.ranges.clear();
  for (std::size_t i = 0; i < std::min<std::size_t>(asked.num_iovas, found.size()); ++i) {
    limits.ranges.push_back({.first = found[i].start, .last = found[i].last});
  }
  limits.page = std::max<std::uint64_t>(asked.out_iova_alignment, static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
  return limits;
}

Result<void> VfioCdevBackend::dma_map(const DmaBuffer& buffer, std::uint64_t iova) {
  if (auto there = check_there(); !there) {
    return there;
  }
  const std::size_t size = buffer.memory.size();
  const std::string what = fmt::format("map {} bytes of memory for it", size);
  if (auto room = memory_lock().reserve(size, cannot(what)); !room) {
    return room;
  }
  iommu_ioas_map map{};
  map.size = sizeof(map);
  map.flags = IOMMU_IOAS_MAP_FIXED_IOVA | IOMMU_IOAS_MAP_WRITEABLE | IOMMU_IOAS_MAP_READABLE;
  map.ioas_id = context_->address_space;
  map.user_va = reinterpret_cast<std::uintptr_t>(buffer.memory.data());
  map.length = size;
  map.iova = iova;
  if (system().ioctl(context_->iommu.get(), IOMMU_IOAS_MAP, &map) >= 0) {
    return {};
  }
  const int error = errno;
  const std::string others =
      "what the user's other processes have pinned for devices";  // what they have locked does not count
  auto failure =
      failed(error, what, "IOMMU_IOAS_MAP", error == ENOMEM ? memory_lock().advice(size, others) : std::string());
  memory_lock().release(size);
  return failure;
}

Result<void> VfioCdevBackend::dma_unmap(std::uint64_t iova, std::size_t size) {
  // For a lost device too: the memory is ours again.
  if (auto ours = check_not_forked(); !ours) {
    return ours;
  }
  const std::string what = fmt::format("unmap {} bytes of memory", size);
  iommu_ioas_unmap unmap{};
  unmap.size = sizeof(unmap);
  unmap.ioas_id = context_->address_space;
  unmap.iova = iova;
  unmap.length = size;
  if (system().ioctl(context_->iommu.get(), IOMMU_IOAS_UNMAP, &unmap) < 0) {
    return failed(errno, what, "IOMMU_IOAS_UNMAP");
  }
  if (unmap.length != size) {
    return failed(EINVAL, what, "IOMMU_IOAS_UNMAP", fmt::format("{} were mapped there", unmap.length));
  }
  memory_lock().release(size);
  return {};
}

}  // namespace gba
