// SPDX-License-Identifier: Apache-2.0
#include "driver/vfio_device_fd.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/regular_file.hpp"
#include "driver/bar_mapping.hpp"
#include "driver/vfio_kernel.hpp"

namespace gba {

namespace {

bool fired(const SystemFd& event) {
  pollfd poll{.fd = event.get(), .events = POLLIN, .revents = 0};
  return ::poll(&poll, 1, 0) > 0;
}

/// The bytes from the region's start that can be mapped: a kernel before 4.16 excludes the page of the MSI-X table,
/// which is behind all registers.
std::uint64_t mappable_front(const VfioInfo& info, const vfio_region_info& head) {
  if ((head.flags & VFIO_REGION_INFO_FLAG_MMAP) == 0) {
    return 0;
  }
  if ((head.flags & VFIO_REGION_INFO_FLAG_CAPS) == 0) {
    return head.size;
  }
  const auto body = info.capability(head.cap_offset, VFIO_REGION_INFO_CAP_SPARSE_MMAP);
  if (body.empty()) {
    return head.size;
  }
  constexpr std::size_t kAreas = sizeof(vfio_info_cap_header) + 2 * sizeof(std::uint32_t);
  const auto area = VfioInfo::at<vfio_region_sparse_mmap_area>(body, kAreas);
  return area && area->offset == 0 && area->size <= head.size ? area->size : 0;
}

}  // namespace

Error fail_call(int error, const std::string& tried, const std::string& call, const std::string& advice) {
  return fail(std::errc{error},
              fmt::format("{}: {}: {}{}", tried, call, errno_text(error), advice.empty() ? "" : " (" + advice + ")"));
}

namespace {

constexpr const char* kTokenFile = "/etc/gba/vf_token";
constexpr std::size_t kLargestTokenFile = 4096;

/// There is no such file, or it is not for this user.
bool is_unavailable(std::errc error) {
  return error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory ||
         error == std::errc::permission_denied;
}

std::string first_word(const std::string& text) {
  constexpr const char* kSpace = " \t\r\n";
  const std::size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  return text.substr(begin, text.find_first_of(kSpace, begin) - begin);
}

std::optional<VfToken> parse_token(const std::string& text) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  VfToken token{.text = text};
  std::size_t digits = 0;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const char c = i < text.size() ? text[i] : '\0';
    unsigned digit = 0;
    if (kForm[i] == '-' ? c != '-' : std::from_chars(&c, &c + 1, digit, 16).ptr == &c) {
      return std::nullopt;
    }
    if (kForm[i] == 'x') {
      auto& byte = token.bytes[digits++ / 2];
      byte = static_cast<std::uint8_t>(static_cast<unsigned>(byte) << 4 | digit);
    }
  }
  return text.size() == kForm.size() ? std::optional(token) : std::nullopt;
}

}  // namespace

Result<VfToken> vf_token(const char* setting) {
  const bool usual = setting == nullptr || *setting == '\0';
  std::string text = usual ? kTokenFile : setting;
  const std::string name = usual ? kTokenFile : fmt::format("GBA_VF_TOKEN, {}", setting);
  if (text.starts_with('/')) {
    const auto content = base::read_text_file(text, kLargestTokenFile);
    if (!content && usual && is_unavailable(content.error().code)) {
      return VfToken{};
    }
    if (!content) {
      return fail(std::errc::invalid_argument, fmt::format("gba: cannot read the VF token from {}: {}{}", text,
                                                           content.error().text, usual ? "" : " (GBA_VF_TOKEN)"));
    }
    text = first_word(*content);
  }
  if (const auto token = parse_token(text)) {
    return *token;
  }
  return fail(std::errc::invalid_argument,
              fmt::format("gba: {}: not a UUID like 12345678-9abc-def0-1234-56789abcdef0, nor a file with one", name));
}

std::string VfioDeviceFd::token_advice(const PciSysfs& sysfs, const VfioNodes& nodes) {
  const std::string physical = sysfs.physical_function(nodes.address);
  const std::string whose = physical.empty()
                                ? "its virtual functions are in use"
                                : fmt::format("it is a virtual function of {}, which vfio-pci has", physical);
  return fmt::format("{}: {} (GBA_VF_TOKEN, or {}, is the token with which the physical function was opened)", whose,
                     nodes.token.text.empty() ? "a VF token is needed" : "the VF token is another one", kTokenFile);
}

VfioDeviceFd::VfioDeviceFd(SystemCalls& system, const PciSysfs& sysfs, std::string address)
    : system_(system),
      address_(std::move(address)),
      numa_node_(sysfs.numa_node(address_)),
      owner_(::getpid()),
      memory_lock_(system) {}

Result<SystemFd> VfioDeviceFd::open_node(SystemCalls& system, const std::string& node, const std::string& tried,
                                         const std::string& if_missing) {
  const int fd = system.open(node.c_str(), O_RDWR | O_CLOEXEC);
  if (fd >= 0) {
    return SystemFd::of_device(system, fd);
  }
  const int error = errno;
  const std::string call = fmt::format("open {}", node);
  switch (error) {
    case ENOENT:
    case ENXIO:
      return fail(std::errc::no_such_device,
                  fmt::format("{}: {}: {} ({})", tried, call, errno_text(error), if_missing));
    case ENODEV:
      return fail_call(error, tried, call, if_missing);
    case EACCES:
      return fail_call(error, tried, call, "is 70-gba.rules, package gba-udev, installed, and are you in group gba?");
    case EBUSY:
      return fail_call(error, tried, call, "another process has it open");
    default:
      return fail_call(error, tried, call);
  }
}

std::string VfioDeviceFd::cannot(const std::string& what) const {
  return fmt::format("gba: {}: cannot {}", address_, what);
}

Error VfioDeviceFd::failed(int error, const std::string& what, const std::string& name, const std::string& advice) {
  if (error == ENODEV) {
    declare_lost(loss_seen());
  }
  if (lost()) {
    return fail(code_of(loss()), fmt::format("{}: {}: the device is lost: {}", cannot(what), name, text_of(loss())));
  }
  return fail_call(error, cannot(what), name, advice);
}

Result<void> VfioDeviceFd::check_there() const {
  if (!lost()) {
    return {};
  }
  return loss_error();
}

Result<void> VfioDeviceFd::check_not_forked() const {
  if (::getpid() == owner_) {
    return {};
  }
  return gba::loss_error(Loss::kForked, address_);
}

Result<void> VfioDeviceFd::set_up(SystemFd device, const std::string& tried) {
  device_ = std::move(device);
  vfio_device_info asked{};
  const auto info = vfio_info(system_, device_.get(), VFIO_DEVICE_GET_INFO, std::as_bytes(std::span(&asked, 1)));
  if (!info) {
    return fail_call(errno, tried, "VFIO_DEVICE_GET_INFO");
  }
  const auto head = info->head<vfio_device_info>();
  if ((head.flags & VFIO_DEVICE_FLAGS_PCI) == 0) {
    return fail(std::errc::no_such_device, tried + ": not a PCI function");
  }
  irqs_ = head.num_irqs;
  can_reset_ = (head.flags & VFIO_DEVICE_FLAGS_RESET) != 0;
  for (std::uint32_t index = 0; index < GBA_NUM_REGIONS && index < head.num_regions; ++index) {
    // A query of the expansion ROM makes the kernel read it, and only VGA devices have the VGA region.
    if (index == VFIO_PCI_ROM_REGION_INDEX || index == VFIO_PCI_VGA_REGION_INDEX) {
      continue;
    }
    const auto region = query_region(index, tried);
    if (!region) {
      return region.error();
    }
    regions_[index] = *region;
  }
  return set_up_loss(tried);
}

Result<VfioDeviceFd::Region> VfioDeviceFd::query_region(std::uint32_t index, const std::string& tried) {
  vfio_region_info asked{};
  asked.index = index;
  const auto info = vfio_info(system_, device_.get(), VFIO_DEVICE_GET_REGION_INFO, std::as_bytes(std::span(&asked, 1)));
  if (!info) {
    return fail_call(errno, tried, fmt::format("VFIO_DEVICE_GET_REGION_INFO of region {}", index));
  }
  const auto head = info->head<vfio_region_info>();
  return Region{.size = head.size, .offset = head.offset, .front = mappable_front(*info, head)};
}

Result<SystemFd> VfioDeviceFd::make_event(const std::string& tried) {
  SystemFd event(system_, system_.eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) {
    return fail_call(errno, tried, "eventfd");
  }
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  if (system_.epoll_ctl(events_.get(), EPOLL_CTL_ADD, event.get(), &wanted) != 0) {
    return fail_call(errno, tried, "epoll_ctl");
  }
  return event;
}

Result<void> VfioDeviceFd::set_up_loss(const std::string& tried) {
  events_ = SystemFd(system_, system_.epoll_create1(EPOLL_CLOEXEC));
  if (!events_) {
    return fail_call(errno, tried, "epoll_create1");
  }
  auto own = make_event(tried);
  if (!own) {
    return own.error();
  }
  lost_event_ = *std::move(own);
  const std::pair<std::uint32_t, SystemFd*> kernel_events[] = {{GBA_IRQ_ERR, &error_event_},
                                                               {GBA_IRQ_REQ, &request_event_}};
  for (const auto& [index, event] : kernel_events) {
    const auto count = irq_count(index);
    if (!count) {
      return count.error();
    }
    if (*count == 0) {
      continue;
    }
    auto made = make_event(tried);
    if (!made) {
      return made.error();
    }
    *event = *std::move(made);
    if (auto armed = arm_irq(index, 0, event->get()); !armed) {
      return armed;
    }
  }
  return {};
}

Loss VfioDeviceFd::loss_seen() const {
  if (fired(request_event_)) {
    return Loss::kWanted;
  }
  return fired(error_event_) ? Loss::kPciError : Loss::kRemoved;
}

void VfioDeviceFd::on_loss() {
  ::eventfd_write(lost_event_.get(), 1);
  // The kernel waits until nothing holds the device.
  BarMapping::detach(*this);
  release(device_);
}

void VfioDeviceFd::release(const SystemFd& descriptor) {
  if (descriptor) {
    system_.dup3(lost_event_.get(), descriptor.get(), O_CLOEXEC);
  }
}

Result<RegionInfo> VfioDeviceFd::region_info(std::uint32_t region) {
  if (auto there = check_there(); !there) {
    return there.error();
  }
  if (region >= regions_.size()) {
    return RegionInfo{};
  }
  const Region& found = regions_[region];
  return RegionInfo{.size = found.size, .mappable = found.size > 0 && found.front == found.size, .front = found.front};
}

Result<VfioDeviceFd::Region> VfioDeviceFd::find(std::uint32_t region, std::uint64_t offset, std::size_t size,
                                                const std::string& what) const {
  if (auto there = check_there(); !there) {
    return there.error();
  }
  const std::uint64_t end = region < regions_.size() ? regions_[region].size : 0;
  if (offset > end || end - offset < size) {
    return fail(std::errc::invalid_argument, fmt::format("{}: the region has {} bytes", cannot(what), end));
  }
  // The kernel reads and writes a BAR by 4 bytes, which is no access to a register of 8 (uapi rule 1).
  if (region <= VFIO_PCI_BAR5_REGION_INDEX && size > sizeof(std::uint32_t)) {
    return fail(std::errc::not_supported,
                fmt::format("{}: this kernel does not let the region be mapped (Linux 4.16 or later does), and would "
                            "split a register of {} bytes",
                            cannot(what), size));
  }
  return regions_[region];
}

namespace {

std::string access_text(const char* verb, std::uint32_t region, std::uint64_t offset, std::size_t size) {
  return fmt::format("{} {} bytes at {:#x} of region {}", verb, size, offset, region);
}

}  // namespace

Result<void> VfioDeviceFd::read(std::uint32_t region, std::uint64_t offset, std::span<std::byte> data) {
  const std::string what = access_text("read", region, offset, data.size());
  const auto found = find(region, offset, data.size(), what);
  if (!found) {
    return found.error();
  }
  const ssize_t done =
      system_.pread(device_.get(), data.data(), data.size(), static_cast<off_t>(found->offset + offset));
  if (done < 0) {
    return failed(errno, what, "pread");
  }
  if (static_cast<std::size_t>(done) != data.size()) {
    return failed(EIO, what, "pread");
  }
  return {};
}

Result<void> VfioDeviceFd::write(std::uint32_t region, std::uint64_t offset, std::span<const std::byte> data) {
  const std::string what = access_text("write", region, offset, data.size());
  const auto found = find(region, offset, data.size(), what);
  if (!found) {
    return found.error();
  }
  const ssize_t done =
      system_.pwrite(device_.get(), data.data(), data.size(), static_cast<off_t>(found->offset + offset));
  if (done < 0) {
    return failed(errno, what, "pwrite");
  }
  if (static_cast<std::size_t>(done) != data.size()) {
    return failed(EIO, what, "pwrite");
  }
  return {};
}

Result<base::Mapping> VfioDeviceFd::map(std::uint32_t region) {
  const auto found = find(region, 0, 0, fmt::format("map region {}", region));
  if (!found) {
    return found.error();
  }
  return map_shared(device_.get(), found->offset, found->front, fmt::format("region {} of {}", region, address_),
                    system_);
}

Result<std::uint32_t> VfioDeviceFd::irq_count(std::uint32_t index) {
  if (auto there = check_there(); !there) {
    return there.error();
  }
  if (index >= irqs_) {
    return 0;
  }
  vfio_irq_info info{.argsz = sizeof(info), .flags = 0, .index = index, .count = 0};
  if (system_.ioctl(device_.get(), VFIO_DEVICE_GET_IRQ_INFO, &info) < 0) {
    if (errno == EINVAL) {
      return 0;  // the kernel's answer for ERR if the function is not PCI Express
    }
    return failed(errno, fmt::format("look up interrupt {}", index), "VFIO_DEVICE_GET_IRQ_INFO");
  }
  return (info.flags & VFIO_IRQ_INFO_EVENTFD) != 0 ? info.count : 0;
}

Result<void> VfioDeviceFd::set_irqs(std::uint32_t index, std::uint32_t first, std::span<const std::int32_t> eventfds) {
  std::vector<std::byte> message(sizeof(vfio_irq_set) + eventfds.size_bytes());
  vfio_irq_set set{};
  set.argsz = static_cast<std::uint32_t>(message.size());
  set.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
  set.index = index;
  set.start = first;
  set.count = static_cast<std::uint32_t>(eventfds.size());
  std::memcpy(message.data(), &set, sizeof(set));
  std::memcpy(message.data() + sizeof(set), eventfds.data(), eventfds.size_bytes());
  const int result = system_.ioctl(device_.get(), VFIO_DEVICE_SET_IRQS, message.data());
  const std::string what = fmt::format("set up interrupt {}", index);
  if (result < 0) {
    return failed(errno, what, "VFIO_DEVICE_SET_IRQS");
  }
  if (result > 0) {  // the number of vectors that are available
    return failed(ENOSPC, what, "VFIO_DEVICE_SET_IRQS",
                  fmt::format("the machine has {} vectors for it, {} are needed", result, eventfds.size()));
  }
  return {};
}

Result<void> VfioDeviceFd::arm_irq(std::uint32_t index, std::uint32_t vector, int eventfd) {
  const std::lock_guard lock(irq_mutex_);
  const auto count = irq_count(index);
  if (!count) {
    return count.error();
  }
  if (index >= armed_.size() || vector >= *count) {
    return fail(std::errc::invalid_argument,
                cannot(fmt::format("arm vector {} of interrupt {}: there are {}", vector, index, *count)));
  }
  if (armed_[index]) {
    return set_irqs(index, vector, std::span(&eventfd, 1));
  }
  // A kernel before 6.5 allocates as many vectors as the first call names, and never more.
  std::vector<std::int32_t> all(*count, -1);
  all[vector] = eventfd;
  auto armed = set_irqs(index, 0, all);
  armed_[index] = armed.has_value();
  return armed;
}

Result<void> VfioDeviceFd::disarm_irq(std::uint32_t index, std::uint32_t vector) {
  if (auto there = check_there(); !there) {
    return there;
  }
  const std::lock_guard lock(irq_mutex_);
  if (index >= armed_.size() || !armed_[index]) {
    return {};
  }
  constexpr std::int32_t kNone = -1;
  return set_irqs(index, vector, std::span(&kNone, 1));
}

Result<void> VfioDeviceFd::reset() {
  if (auto there = check_there(); !there) {
    return there;
  }
  if (!can_reset_) {
    return fail(std::errc::operation_not_supported, cannot("reset it: the function has no reset"));
  }
  if (system_.ioctl(device_.get(), VFIO_DEVICE_RESET, nullptr) < 0) {
    return failed(errno, "reset it", "VFIO_DEVICE_RESET");
  }
  return {};
}

}  // namespace gba
