// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/driver/fake_kernel.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace gba::test {

namespace {

constexpr unsigned kRegionShift = 40;  // vfio-pci puts region i at i << 40
constexpr std::uint32_t kAddressSpace = 7;

template <typename T>
T& as(void* argument) {
  return *static_cast<T*>(argument);
}

}  // namespace

std::string ioctl_name(unsigned long request) {
#define NAMED(name) \
  { name, #name }
  static const std::map<unsigned long, std::string> names{
      NAMED(VFIO_GET_API_VERSION),     NAMED(VFIO_CHECK_EXTENSION),
      NAMED(VFIO_SET_IOMMU),           NAMED(VFIO_GROUP_GET_STATUS),
      NAMED(VFIO_GROUP_SET_CONTAINER), NAMED(VFIO_GROUP_GET_DEVICE_FD),
      NAMED(VFIO_DEVICE_GET_INFO),     NAMED(VFIO_DEVICE_GET_REGION_INFO),
      NAMED(VFIO_DEVICE_GET_IRQ_INFO), NAMED(VFIO_DEVICE_SET_IRQS),
      NAMED(VFIO_DEVICE_RESET),        NAMED(VFIO_IOMMU_GET_INFO),
      NAMED(VFIO_IOMMU_MAP_DMA),       NAMED(VFIO_IOMMU_UNMAP_DMA),
      NAMED(VFIO_DEVICE_BIND_IOMMUFD), NAMED(VFIO_DEVICE_ATTACH_IOMMUFD_PT),
      NAMED(IOMMU_IOAS_ALLOC),         NAMED(IOMMU_IOAS_IOVA_RANGES),
      NAMED(IOMMU_IOAS_MAP),           NAMED(IOMMU_IOAS_UNMAP),
  };
#undef NAMED
  const auto found = names.find(request);
  return found == names.end() ? "ioctl " + std::to_string(request) : found->second;
}

FakeKernel::FakeKernel() {
  regions[GBA_REGION_CONTROL] = {.size = GBA_BAR0_SIZE, .mappable = true, .areas = {}};
  regions[GBA_REGION_DOORBELLS] = {.size = GBA_BAR2_SIZE, .mappable = true, .areas = {}};
  regions[GBA_REGION_FLAGS] = {.size = GBA_BAR4_SIZE, .mappable = true, .areas = {}};
  regions[GBA_REGION_CONFIG] = {.size = GBA_CONFIG_SIZE, .mappable = false, .areas = {}};
  irqs = {{GBA_IRQ_INTX, 1}, {GBA_IRQ_MSI, 1}, {GBA_IRQ_MSIX, GBA_MSIX_VECTORS}, {GBA_IRQ_ERR, 1}, {GBA_IRQ_REQ, 1}};
  // As on x86: a hole for interrupts, and 39 bits.
  ranges = {{.first = 0, .last = 0xfedfffff}, {.first = 0xfef00000, .last = (UINT64_C(1) << 39) - 1}};
}

FakeKernel::~FakeKernel() {
  for (const auto& [fd, file] : files_) {
    ::close(fd);
  }
}

bool FakeKernel::enter(const std::string& call) {
  log.push_back(call);
  if (calls++ != failing_call) {
    return true;
  }
  failed_call = call;
  errno = failure;
  return false;
}

int FakeKernel::fail_with(int error) {
  errno = error;
  return -1;
}

int FakeKernel::give(const File& file) {
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);  // any descriptor will do, and this one can be polled
  files_[fd] = file;
  return fd;
}

int FakeKernel::open(const char* path, int /*flags*/) {
  if (!enter("open")) {
    return -1;
  }
  const std::set<std::string> known{kGroupNodes.device, kGroupNodes.iommu, kCdevNodes.device, kCdevNodes.iommu,
                                    kSecondCdevNodes.device};
  if (!known.contains(path)) {
    return fail_with(ENOENT);
  }
  if (path == kGroupNodes.device && is_open(path)) {
    return fail_with(EBUSY);  // a group can be opened once only
  }
  return give(path);
}

int FakeKernel::close(int fd) {
  const auto file = files_.find(fd);
  if (file == files_.end()) {
    wrong_ += "closed " + std::to_string(fd) + ", which is not open; ";
    return fail_with(EBADF);
  }
  if (file->second == kGroupNodes.iommu || file->second == kCdevNodes.iommu) {
    dma.clear();
  }
  files_.erase(file);
  return ::close(fd);
}

int FakeKernel::dup3(int from, int to, int flags) {
  if (files_.contains(from) && files_.contains(to)) {
    if (files_[to] == kGroupNodes.iommu) {
      dma.clear();
    }
    files_[to] = files_[from];
  }
  return ::dup3(from, to, flags);
}

bool FakeKernel::is_open(const std::string& path) const {
  return std::any_of(files_.begin(), files_.end(), [&path](const auto& file) { return file.second == path; });
}

bool FakeKernel::device_is_open() const {
  return is_open("device");
}

std::vector<int> FakeKernel::holding_device() const {
  std::vector<int> found;
  for (const auto& [fd, file] : files_) {
    if (file != "eventfd" && file != "epoll") {
      found.push_back(fd);
    }
  }
  return found;
}

int FakeKernel::eventfd(unsigned value, int flags) {
  if (!enter("eventfd")) {
    return -1;
  }
  const int fd = ::eventfd(value, flags);
  files_[fd] = "eventfd";
  return fd;
}

int FakeKernel::epoll_create1(int flags) {
  if (!enter("epoll_create1")) {
    return -1;
  }
  const int fd = ::epoll_create1(flags);
  files_[fd] = "epoll";
  return fd;
}

int FakeKernel::epoll_ctl(int epoll, int operation, int fd, epoll_event* event) {
  return enter("epoll_ctl") ? ::epoll_ctl(epoll, operation, fd, event) : -1;
}

int FakeKernel::getrlimit(int resource, rlimit* limit) {
  if (!enter("getrlimit")) {
    return -1;
  }
  if (resource != RLIMIT_MEMLOCK) {
    return fail_with(EINVAL);
  }
  *limit = {.rlim_cur = memory_lock, .rlim_max = memory_lock};
  return 0;
}

namespace {

std::uint64_t front(const FakeKernel::Region& region) {
  return region.areas.empty() ? region.size : region.areas.front().size;
}

/// True if the kernel would split the access. It accesses a BAR by 4 bytes at most, which 8-byte registers ignore.
bool splits(std::uint32_t region, std::size_t size) {
  return region <= VFIO_PCI_BAR5_REGION_INDEX && size > 4;
}

}  // namespace

ssize_t FakeKernel::pread(int /*fd*/, void* data, std::size_t size, off_t offset) {
  if (!enter("pread")) {
    return -1;
  }
  const auto region = static_cast<std::uint32_t>(offset >> kRegionShift);
  if (splits(region, size)) {
    std::memset(data, 0, size);
    return static_cast<ssize_t>(size);
  }
  std::memcpy(data, bytes(region, static_cast<std::uint64_t>(offset) & 0xffffff, size).data(), size);
  return static_cast<ssize_t>(size);
}

ssize_t FakeKernel::pwrite(int /*fd*/, const void* data, std::size_t size, off_t offset) {
  if (!enter("pwrite")) {
    return -1;
  }
  const auto region = static_cast<std::uint32_t>(offset >> kRegionShift);
  if (splits(region, size)) {
    return static_cast<ssize_t>(size);
  }
  memory_[region].resize(regions[region].size);
  std::memcpy(memory_[region].data() + (offset & 0xffffff), data, size);
  return static_cast<ssize_t>(size);
}

std::string FakeKernel::bytes(std::uint32_t region, std::uint64_t offset, std::size_t size) {
  memory_[region].resize(regions[region].size);
  return {reinterpret_cast<const char*>(memory_[region].data() + offset), size};
}

void* FakeKernel::mmap(void* address, std::size_t size, int protection, int /*flags*/, int fd, off_t offset) {
  if (!enter("map")) {
    return MAP_FAILED;
  }
  const auto region = regions.find(static_cast<std::uint32_t>(offset >> kRegionShift));
  if (files_[fd] != "device" || region == regions.end() || !region->second.mappable || size > front(region->second)) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  return ::mmap(address, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int FakeKernel::ioctl(int fd, unsigned long request, void* argument) {
  if (!enter(ioctl_name(request))) {
    return -1;
  }
  const auto file = files_.find(fd);
  if (file == files_.end()) {
    return fail_with(EBADF);
  }
  if (file->second == kGroupNodes.iommu) {
    return container_ioctl(request, argument);
  }
  if (file->second == kGroupNodes.device) {
    return group_ioctl(request, argument);
  }
  if (file->second == kCdevNodes.iommu) {
    return iommufd_ioctl(request, argument);
  }
  if (file->second == "device") {
    return device_ioctl(request, argument);
  }
  if ((file->second != kCdevNodes.device && file->second != kSecondCdevNodes.device) ||
      request != VFIO_DEVICE_BIND_IOMMUFD) {
    return fail_with(EINVAL);
  }
  // An unbound character device accepts no other request.
  const auto& bind = as<VfioBind>(argument);
  if (files_[bind.iommufd] != kCdevNodes.iommu || (bind.flags != 0 && !cdev_knows_token)) {
    return fail_with(EINVAL);
  }
  const bool token = (bind.flags & kVfioBindToken) != 0;
  if (token && vf_token.text.empty()) {
    return fail_with(EINVAL);
  }
  if (cdev_knows_token && !vf_token.text.empty() &&
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      (!token || std::memcmp(reinterpret_cast<const void*>(bind.token), vf_token.bytes.data(), 16) != 0)) {
    return fail_with(EACCES);
  }
  file->second = "device";
  return 0;
}

int FakeKernel::container_ioctl(unsigned long request, void* argument) {
  switch (request) {
    case VFIO_GET_API_VERSION:
      return api_version;
    case VFIO_CHECK_EXTENSION:
      return extensions.contains(reinterpret_cast<std::uintptr_t>(argument)) ? 1 : 0;
    case VFIO_SET_IOMMU:
      return attached_ && argument == reinterpret_cast<void*>(VFIO_TYPE1v2_IOMMU) ? 0 : fail_with(EINVAL);
    case VFIO_IOMMU_GET_INFO:
      return iommu_info(argument);
    case VFIO_IOMMU_MAP_DMA:
      return map_dma(as<vfio_iommu_type1_dma_map>(argument).iova, as<vfio_iommu_type1_dma_map>(argument).size);
    case VFIO_IOMMU_UNMAP_DMA: {
      auto& unmap = as<vfio_iommu_type1_dma_unmap>(argument);
      std::uint64_t size = unmap.size;
      const int result = unmap_dma(unmap.iova, size);
      unmap.size = size;
      return result;
    }
    default:
      return fail_with(EINVAL);
  }
}

int FakeKernel::group_ioctl(unsigned long request, void* argument) {
  switch (request) {
    case VFIO_GROUP_GET_STATUS:
      as<vfio_group_status>(argument).flags = group_flags;
      return 0;
    case VFIO_GROUP_SET_CONTAINER:
      attached_ = files_[as<int>(argument)] == kGroupNodes.iommu;
      return attached_ ? 0 : fail_with(EINVAL);
    case VFIO_GROUP_GET_DEVICE_FD:
      return device_of_group(static_cast<const char*>(argument));
    default:
      return fail_with(EINVAL);
  }
}

int FakeKernel::device_of_group(const std::string& name) {
  if (!name.starts_with(kGroupNodes.address) && !name.starts_with(kSecondGroupNodes.address)) {
    return fail_with(ENODEV);
  }
  const std::string rest = name.substr(kGroupNodes.address.size());
  if (vf_token.text.empty() && !rest.empty()) {
    return fail_with(EINVAL);
  }
  if (!vf_token.text.empty() && rest != " vf_token=" + vf_token.text) {
    return fail_with(EACCES);
  }
  return attached_ ? give("device") : fail_with(EINVAL);
}

int FakeKernel::iommufd_ioctl(unsigned long request, void* argument) {
  switch (request) {
    case IOMMU_IOAS_ALLOC:
      as<iommu_ioas_alloc>(argument).out_ioas_id = kAddressSpace + spaces_++;
      return 0;
    case IOMMU_IOAS_IOVA_RANGES:
      return iova_ranges(argument);
    case IOMMU_IOAS_MAP: {
      const auto& map = as<iommu_ioas_map>(argument);
      const bool good = map.ioas_id == attached_to_ && (map.flags & IOMMU_IOAS_MAP_FIXED_IOVA) != 0;
      return good ? map_dma(map.iova, map.length) : fail_with(ENOENT);
    }
    case IOMMU_IOAS_UNMAP: {
      auto& unmap = as<iommu_ioas_unmap>(argument);
      std::uint64_t size = unmap.length;
      const int result = unmap_dma(unmap.iova, size);
      unmap.length = size;
      return result;
    }
    default:
      return fail_with(ENOTTY);
  }
}

int FakeKernel::device_ioctl(unsigned long request, void* argument) {
  switch (request) {
    case VFIO_DEVICE_ATTACH_IOMMUFD_PT:
      return attach(as<vfio_device_attach_iommufd_pt>(argument).pt_id);
    case VFIO_DEVICE_GET_INFO: {
      auto& info = as<vfio_device_info>(argument);
      info.flags = device_flags;
      info.num_regions = GBA_NUM_REGIONS;
      info.num_irqs = GBA_NUM_IRQS;
      return 0;
    }
    case VFIO_DEVICE_GET_REGION_INFO:
      return region_info(argument);
    case VFIO_DEVICE_GET_IRQ_INFO: {
      auto& info = as<vfio_irq_info>(argument);
      if (!irqs.contains(info.index)) {
        return fail_with(EINVAL);
      }
      info.flags = VFIO_IRQ_INFO_EVENTFD;
      info.count = irqs[info.index];
      return 0;
    }
    case VFIO_DEVICE_SET_IRQS:
      return set_irqs(argument);
    case VFIO_DEVICE_RESET:
      return 0;
    default:
      return fail_with(ENOTTY);
  }
}

/// All open devices of an IOMMU group share one address space.
int FakeKernel::attach(std::uint32_t space) {
  if (space < kAddressSpace || space >= kAddressSpace + spaces_) {
    return fail_with(ENOENT);
  }
  const auto open = std::count_if(files_.begin(), files_.end(), [](const auto& f) { return f.second == "device"; });
  if (open > 1 && space != attached_to_) {
    return fail_with(EBUSY);
  }
  attached_ = true;
  attached_to_ = space;
  return 0;
}

int FakeKernel::region_info(void* argument) {
  auto& info = as<vfio_region_info>(argument);
  if (info.index == VFIO_PCI_VGA_REGION_INDEX) {
    return fail_with(EINVAL);
  }
  const Region& region = regions[info.index];
  info.size = region.size;
  info.offset = static_cast<std::uint64_t>(info.index) << kRegionShift;
  info.flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
  if (region.mappable) {
    info.flags |= VFIO_REGION_INFO_FLAG_MMAP;
  }
  if (region.areas.empty()) {
    return 0;
  }
  info.flags |= VFIO_REGION_INFO_FLAG_CAPS;
  constexpr std::size_t kAreas = offsetof(vfio_region_info_cap_sparse_mmap, areas);
  const std::size_t needed = sizeof(info) + kAreas + region.areas.size() * sizeof(region.areas[0]);
  const std::size_t room = std::exchange(info.argsz, static_cast<std::uint32_t>(needed));
  info.cap_offset = 0;
  if (room < needed) {
    return 0;
  }
  info.cap_offset = sizeof(info);
  auto* body = static_cast<std::byte*>(argument) + sizeof(info);
  __extension__ vfio_region_info_cap_sparse_mmap capability{};  // ends with an array of no elements
  capability.header.id = VFIO_REGION_INFO_CAP_SPARSE_MMAP;
  capability.nr_areas = static_cast<std::uint32_t>(region.areas.size());
  std::memcpy(body, &capability, kAreas);
  std::memcpy(body + kAreas, region.areas.data(), region.areas.size() * sizeof(region.areas[0]));
  return 0;
}

int FakeKernel::set_irqs(const void* argument) {
  vfio_irq_set set{};
  std::memcpy(&set, argument, sizeof(set));
  std::vector<int> fds(set.count);
  std::memcpy(fds.data(), static_cast<const std::byte*>(argument) + sizeof(set), fds.size() * sizeof(int));
  std::vector<int>& armed = armed_[set.index];
  if (set.start + set.count > irqs[set.index]) {
    return fail_with(EINVAL);
  }
  if (armed.empty() && static_cast<int>(set.start + set.count) > vectors_to_be_had) {
    return vectors_to_be_had;
  }
  if (armed.empty()) {
    armed.assign(set.start + set.count, -1);
  }
  if (set.start + set.count > armed.size()) {
    return fail_with(EINVAL);
  }
  std::copy(fds.begin(), fds.end(), armed.begin() + set.start);
  return 0;
}

void FakeKernel::fire(std::uint32_t index, std::uint32_t vector) {
  if (armed_[index].size() > vector && armed_[index][vector] >= 0) {
    ::eventfd_write(armed_[index][vector], 1);
  }
}

int FakeKernel::iommu_info(void* argument) const {
  auto& info = as<vfio_iommu_type1_info>(argument);
  info.flags = VFIO_IOMMU_INFO_PGSIZES;
  info.iova_pgsizes = page_sizes;
  if (!iommu_has_capabilities) {
    return 0;
  }
  info.flags |= VFIO_IOMMU_INFO_CAPS;
  // The ranges are the second capability, and the chain does not begin directly behind the struct.
  constexpr std::size_t kFirst = sizeof(info) + 8;
  constexpr std::size_t kSecond = kFirst + sizeof(vfio_iommu_type1_info_dma_avail);
  constexpr std::size_t kRanges = kSecond + sizeof(vfio_iommu_type1_info_cap_iova_range);
  const std::size_t needed = kRanges + ranges.size() * sizeof(vfio_iova_range);
  const std::size_t room = std::exchange(info.argsz, static_cast<std::uint32_t>(needed));
  if (room < needed) {
    return 0;
  }
  info.cap_offset = kFirst;
  auto* start = static_cast<std::byte*>(argument);
  vfio_iommu_type1_info_dma_avail available{};
  available.header = {.id = VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL, .version = 1, .next = kSecond};
  std::memcpy(start + kFirst, &available, sizeof(available));
  __extension__ vfio_iommu_type1_info_cap_iova_range capability{};
  capability.header = {.id = VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE, .version = 1, .next = 0};
  capability.nr_iovas = static_cast<std::uint32_t>(ranges.size());
  std::memcpy(start + kSecond, &capability, sizeof(capability));
  std::memcpy(start + kRanges, ranges.data(), ranges.size() * sizeof(vfio_iova_range));
  return 0;
}

int FakeKernel::iova_ranges(void* argument) {
  auto& asked = as<iommu_ioas_iova_ranges>(argument);
  if (asked.ioas_id != attached_to_) {
    return fail_with(ENOENT);
  }
  const std::size_t room = std::exchange(asked.num_iovas, static_cast<std::uint32_t>(ranges.size()));
  asked.out_iova_alignment = 1;
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  std::memcpy(reinterpret_cast<void*>(asked.allowed_iovas), ranges.data(),
              std::min(room, ranges.size()) * sizeof(iommu_iova_range));
  return room < ranges.size() ? fail_with(EMSGSIZE) : 0;
}

int FakeKernel::map_dma(std::uint64_t iova, std::uint64_t size) {
  if (!attached_ || dma.contains(iova)) {
    return fail_with(EEXIST);
  }
  dma[iova] = size;
  return 0;
}

int FakeKernel::unmap_dma(std::uint64_t iova, std::uint64_t& size) {
  const auto found = dma.find(iova);
  size = found == dma.end() ? 0 : found->second;
  if (found != dma.end()) {
    dma.erase(found);
  }
  return 0;
}

std::string FakeKernel::left_over() const {
  std::string text = wrong_;
  for (const auto& [fd, file] : files_) {
    text += file + " is open; ";
  }
  if (!dma.empty()) {
    text += std::to_string(dma.size()) + " mapped for the device; ";
  }
  return text;
}

std::size_t FakeKernel::count(const std::string& call) const {
  return static_cast<std::size_t>(std::count(log.begin(), log.end(), call));
}

}  // namespace gba::test
