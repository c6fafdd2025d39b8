// SPDX-License-Identifier: Apache-2.0
#include "driver/device.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <span>
#include <thread>
#include <utility>

#include "uapi/gba_regs.h"

namespace gba {

namespace {

constexpr std::chrono::seconds kReadyTimeout{5};
constexpr std::chrono::milliseconds kReadyPoll{1};

constexpr const char* kFatal =
    "it reports a fatal error (FATAL) and serves nobody until it is reset: gba reset --yes DEVICE, through its "
    "privileged port (the physical function; of a gba-fake-device its --admin-socket)";

tl::unexpected<Error> not_a_gba(const Backend& backend, const std::string& why) {
  return fail(std::errc::no_such_device, "gba: " + backend.path() + " is not a GBA: " + why);
}

Result<void> check_identity(const Backend& backend, const Registers& control) {
  const auto magic = control.read<std::uint32_t>(GBA_REG_MAGIC);
  if (!magic) return tl::make_unexpected(magic.error());
  if (*magic != GBA_MAGIC_VALUE) return not_a_gba(backend, "its MAGIC register reads " + std::to_string(*magic));
  const auto version = control.read<std::uint32_t>(GBA_REG_VERSION);
  if (!version) return tl::make_unexpected(version.error());
  const std::uint64_t major = GBA_FIELD_GET(GBA_VERSION_MAJOR_FIELD, *version);
  if (major != GBA_VERSION_MAJOR) {
    return fail(std::errc::protocol_error, "gba: cannot open " + backend.path() + ": its registers have version " +
                                               std::to_string(major) + ", this library knows version " +
                                               std::to_string(GBA_VERSION_MAJOR) + " (update libgba)");
  }
  return {};
}

enum class IfFatal { kRefuse, kTake };

/// Waits for READY; the device may be in the middle of a reset. `tried` begins the text of an Error.
Result<void> wait_ready(const Registers& control, const std::string& tried, IfFatal if_fatal = IfFatal::kRefuse) {
  const Deadline deadline = Deadline::after(kReadyTimeout);
  for (;;) {
    const auto status = control.read<std::uint64_t>(GBA_REG_DEV_STATUS);
    if (!status) return tl::make_unexpected(status.error());
    if (*status == GBA_ALL_ONES) return fail(std::errc::no_such_device, tried + text_of(Loss::kRemoved));
    if ((*status & GBA_DEV_STATUS_FATAL) != 0) {
      if (if_fatal == IfFatal::kTake) return {};
      return fail(std::errc::io_error, tried + kFatal);
    }
    if ((*status & GBA_DEV_STATUS_READY) != 0) return {};
    if (deadline.passed()) return fail(std::errc::no_such_device, tried + "it does not become ready");
    std::this_thread::sleep_for(kReadyPoll);
  }
}

Result<DeviceFacts> read_facts(const Backend& backend, const Profile& profile, const Registers& control) {
  const auto version = control.read<std::uint32_t>(GBA_REG_VERSION);
  if (!version) return tl::make_unexpected(version.error());
  const auto capabilities = control.read<std::uint64_t>(GBA_REG_CAPS);
  if (!capabilities) return tl::make_unexpected(capabilities.error());
  const auto port = control.read<std::uint32_t>(GBA_REG_PORT_ID);
  if (!port) return tl::make_unexpected(port.error());
  const DeviceFacts facts{.version = *version,
                          .capabilities = *capabilities,
                          .port = *port,
                          .groups = static_cast<std::uint32_t>(GBA_FIELD_GET(GBA_CAPS_GROUPS, *capabilities)),
                          .members = static_cast<std::uint32_t>(GBA_FIELD_GET(GBA_CAPS_MEMBERS, *capabilities))};
  if (facts.groups == 0 || facts.groups > profile.groups || facts.members == 0 || facts.members > profile.members) {
    return not_a_gba(
        backend, "it has " + std::to_string(facts.groups) + " groups of " + std::to_string(facts.members) + " members");
  }
  return facts;
}

Result<DeviceFacts> identify(const Backend& backend, const Profile& profile, const Registers& control,
                             IfFatal if_fatal) {
  if (auto good = check_identity(backend, control); !good) return tl::make_unexpected(good.error());
  const std::string tried = "gba: cannot open " + backend.path() + ": ";
  if (auto ready = wait_ready(control, tried, if_fatal); !ready) return tl::make_unexpected(ready.error());
  return read_facts(backend, profile, control);
}

std::string group_name(const gba_group_handle& handle) {
  return "group " + std::to_string(handle.group);
}

/// The bits of members 0..count-1 in mask word `word`.
std::uint64_t mask_word(std::uint32_t count, std::uint32_t word) {
  const std::uint32_t below = std::min(count, 64 * word);
  const std::uint32_t bits = std::min(count - below, 64U);
  return bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1;
}

void copy_text(std::span<char> to, const std::string& text) {
  const std::size_t length = std::min(text.size(), to.size() - 1);
  std::copy_n(text.begin(), length, to.begin());
  to[length] = '\0';
}

}  // namespace

Device::Device(std::unique_ptr<Backend> backend, Registers control, const Profile& profile, const DeviceFacts& facts,
               const IovaWindow& iovas, std::uint64_t page)
    : backend_(std::move(backend)),
      control_(std::move(control)),
      profile_(profile),
      facts_(facts),
      commands_(*backend_, control_),
      iovas_(iovas.first, iovas.size, page),
      flags_(*backend_, iovas_, page) {}

Result<std::unique_ptr<Device>> Device::open(std::unique_ptr<Backend> backend, std::span<const PciId> expected,
                                             FlagPlace flags, bool even_fatal) {
  auto config = PciConfig::open(*backend, expected);
  if (!config) return tl::make_unexpected(config.error());
  if (auto enabled = config->enable_memory(); !enabled) return tl::make_unexpected(enabled.error());
  auto control = Registers::open(*backend, GBA_REGION_CONTROL, GBA_BAR0_SIZE);
  if (!control) return tl::make_unexpected(control.error());
  const Profile& profile = profile_of(config->id());
  const auto facts = identify(*backend, profile, *control, even_fatal ? IfFatal::kTake : IfFatal::kRefuse);
  if (!facts) return tl::make_unexpected(facts.error());
  // Only now that it is known to be a GBA may it write to memory.
  if (auto enabled = config->enable_bus_master(); !enabled) return tl::make_unexpected(enabled.error());

  const auto limits = backend->dma_limits();
  if (!limits) return tl::make_unexpected(limits.error());
  const auto window = choose_window(*limits);
  if (!window) return tl::make_unexpected(window.error());

  std::unique_ptr<Device> device(
      new Device(std::move(backend), *std::move(control), profile, *facts, *window, limits->page));
  if (auto done = device->set_up_doorbells(); !done) return tl::make_unexpected(done.error());
  if (auto done = device->set_up_interrupts(); !done) return tl::make_unexpected(done.error());
  if (auto done = device->flags_.choose(flags, device->has(GBA_CAPS_BAR_FLAGS)); !done) {
    return tl::make_unexpected(done.error());
  }
  device->backend_->set_farewell([port = device.get()] { port->leave_all(); });
  return device;
}

void Device::leave_all() {
  const auto run = [&](std::uint8_t opcode, std::size_t group) {
    return commands_.run({.opcode = opcode, .group = static_cast<std::uint8_t>(group)}, "part with it").has_value();
  };
  const std::scoped_lock lock(places_.mutex, owned_mutex_);
  for (std::size_t group = 0; group < kMaxGroups; ++group) {
    if (places_.holder[group] != 0 && run(GBA_CMD_LEAVE, group)) places_.holder[group] = 0;
    if (owned_[group] != 0 && run(GBA_CMD_FREE, group)) owned_[group] = 0;
  }
}

Result<void> Device::set_up_doorbells() {
  const auto info = backend_->region_info(GBA_REGION_DOORBELLS);
  if (!info) return tl::make_unexpected(info.error());
  if (info->size < GBA_BAR2_SIZE || !info->mappable) return not_a_gba(*backend_, "its doorbells cannot be mapped");
  auto mapping = BarMapping::make(*backend_, GBA_REGION_DOORBELLS);
  if (!mapping) return tl::make_unexpected(mapping.error());
  doorbells_ = *std::move(mapping);
  if (!has(GBA_CAPS_WAKEUP)) return {};
  auto eventfd = backend_->doorbell_eventfd(GBA_REGION_DOORBELLS, GBA_DOORBELL_WAKEUP);
  if (!eventfd) return tl::make_unexpected(eventfd.error());
  kick_eventfd_ = *std::move(eventfd);
  return {};
}

Result<void> Device::set_up_interrupts() {
  const auto vectors = backend_->irq_count(GBA_IRQ_MSIX);
  if (!vectors) return tl::make_unexpected(vectors.error());
  interrupts_ = has(GBA_CAPS_NOTIFY) && *vectors >= facts_.groups;
  return {};
}

MmioWord<std::uint64_t> Device::doorbell(std::uint32_t group) const {
  return MmioRegion(doorbells_.bytes()).word<std::uint64_t>(GBA_DOORBELL_SLOT(group));
}

MmioWord<std::uint32_t> Device::wakeup() const {
  if (!has(GBA_CAPS_WAKEUP)) return {};
  return MmioRegion(doorbells_.bytes()).word<std::uint32_t>(GBA_DOORBELL_WAKEUP);
}

SpinPolicy Device::spin(std::uint32_t members) const {
  // A device that is a process takes a processor itself, and so does each of its members: they are on this machine.
  return spin_policy(usable_processors(), has(GBA_CAPS_WAKEUP) ? members + 1 : 1);
}

void Device::kick() {
  if (backend_->lost()) return;
  const std::uint64_t one = 1;
  if (!kick_eventfd_) {
    control_.post<std::uint64_t>(GBA_REG_KICK, one);
  } else if (::write(kick_eventfd_.get(), &one, sizeof(one)) != sizeof(one)) {
    backend_->check_lost();
  }
}

Result<void> Device::check_condition() {
  if (backend_->check_lost()) return tl::make_unexpected(backend_->loss_error());
  const auto status = control_.read<std::uint64_t>(GBA_REG_DEV_STATUS);
  if (!status) return tl::make_unexpected(status.error());
  if (*status == GBA_ALL_ONES) {
    backend_->declare_lost(Loss::kRemoved);
    return tl::make_unexpected(backend_->loss_error());
  }
  const std::string text = "gba: " + backend_->path() + ": ";
  if ((*status & GBA_DEV_STATUS_FATAL) != 0) return fail(std::errc::io_error, text + kFatal);
  if ((*status & GBA_DEV_STATUS_LINK_UP) == 0) {
    return fail(std::errc::network_down, text + "the link of this port, " + std::to_string(facts_.port) + ", is down");
  }
  return {};
}

Result<void> Device::check_storm() const {
  const std::uint32_t group = storm_.load(std::memory_order_relaxed);
  if (group == kNoStorm) return {};
  return fail(std::errc::value_too_large,
              "gba: " + backend_->path() + ": an interrupt storm: for group " + std::to_string(group) +
                  " came far more interrupts than were asked for, so they are switched off until it is joined anew "
                  "(barriers go on, a sleeping member looks every millisecond)");
}

gba_device_info Device::info() const {
  gba_device_info info{};
  copy_text(info.backend, backend_->name());
  copy_text(info.path, backend_->path());
  info.version = facts_.version;
  info.port = facts_.port;
  info.groups = facts_.groups;
  info.members = facts_.members;
  info.is_process = has(GBA_CAPS_WAKEUP) ? 1 : 0;
  info.features = facts_.capabilities;
  info.flags = flags_.place() == FlagPlace::kBar ? GBA_FLAGS_BAR : GBA_FLAGS_DMA;
  return info;
}

Result<gba_device_counters> Device::counters() {
  gba_device_counters counters{};
  const std::pair<std::uint64_t, std::uint64_t*> registers[] = {
      {GBA_REG_COUNTER_ARRIVALS, &counters.arrivals},     {GBA_REG_COUNTER_RELEASES, &counters.releases},
      {GBA_REG_COUNTER_STALE, &counters.stale},           {GBA_REG_COUNTER_REJECTED, &counters.rejected},
      {GBA_REG_COUNTER_DMA_FAULTS, &counters.dma_faults}, {GBA_REG_COUNTER_TIMEOUTS, &counters.timeouts},
      {GBA_REG_COUNTER_RESETS, &counters.resets},         {GBA_REG_COUNTER_ERRORS, &counters.errors},
      {GBA_REG_COUNTER_INTERRUPTS, &counters.interrupts}, {GBA_REG_COUNTER_WAKEUPS, &counters.wakeups}};
  for (const auto& [offset, counter] : registers) {
    const auto value = control_.read<std::uint64_t>(offset);
    if (!value) return tl::make_unexpected(value.error());
    *counter = *value;
  }
  return counters;
}

Result<void> Device::reset() {
  const std::uint64_t refused = GBA_FAULT_BIT(GBA_FAULT_NOT_PERMITTED);
  // An old fault of this kind would pass for an answer (uapi rules 3 and 23).
  if (auto cleared = control_.write<std::uint64_t>(GBA_REG_FAULT, refused); !cleared) return cleared;
  auto written = control_.write<std::uint64_t>(GBA_REG_DEV_CONTROL, GBA_DEV_CONTROL_RESET);
  if (!written) return written;
  const auto faults = control_.read<std::uint64_t>(GBA_REG_FAULT);
  if (!faults) return tl::make_unexpected(faults.error());
  if (*faults == GBA_ALL_ONES) {
    backend_->declare_lost(Loss::kRemoved);
    return tl::make_unexpected(backend_->loss_error());
  }
  const std::string tried = "gba: cannot reset " + backend_->path() + ": ";
  if ((*faults & refused) == 0) return wait_ready(control_, tried);
  (void)control_.write<std::uint64_t>(GBA_REG_FAULT, refused);
  return fail(
      std::errc::operation_not_permitted,
      tried + "port " + std::to_string(facts_.port) +
          " is not the privileged one (that is the physical function; of a gba-fake-device its --admin-socket)");
}

Result<void> Device::check(const gba_group_handle& handle) const {
  if (handle.group < facts_.groups && handle.member_count > 0 && handle.member_count <= facts_.members &&
      handle.reserved == 0 && handle.sequence <= GBA_FLAG_SEQUENCE_MASK) {
    return {};
  }
  return fail(std::errc::invalid_argument, "gba: " + backend_->path() + ": not a handle of a group: group " +
                                               std::to_string(handle.group) + " of " +
                                               std::to_string(handle.member_count) + " members");
}

Result<gba_group_handle> Device::alloc(std::uint32_t member_count, std::uint64_t sequence) {
  if (member_count == 0 || member_count > facts_.members || sequence > GBA_FLAG_SEQUENCE_MASK) {
    return fail(std::errc::invalid_argument,
                "gba: " + backend_->path() + ": cannot allocate a group of " + std::to_string(member_count) +
                    " members (1 to " + std::to_string(facts_.members) + ") from sequence " + std::to_string(sequence));
  }
  const auto result = commands_.run({.opcode = GBA_CMD_ALLOC}, "allocate a group");
  if (!result) return tl::make_unexpected(result.error());
  const gba_group_handle handle{.group = static_cast<std::uint32_t>(GBA_FIELD_GET(GBA_CMD_RESULT_GROUP, *result)),
                                .key = static_cast<std::uint32_t>(GBA_FIELD_GET(GBA_CMD_RESULT_KEY, *result)),
                                .member_count = member_count,
                                .reserved = 0,
                                .sequence = sequence};
  if (auto good = check(handle); !good) return tl::make_unexpected(good.error());
  if (auto configured = configure(handle); !configured) {
    (void)commands_.run({.opcode = GBA_CMD_FREE, .group = static_cast<std::uint8_t>(handle.group)}, "free it again");
    return tl::make_unexpected(configured.error());
  }
  const std::lock_guard lock(owned_mutex_);
  owned_[handle.group] = handle.key;
  return handle;
}

Result<void> Device::configure(const gba_group_handle& handle) {
  const std::uint64_t base = map().block(handle.group);
  const std::uint64_t count_at = base + map().member_count;
  auto counted = map().member_count_bytes == 4 ? control_.write<std::uint32_t>(count_at, handle.member_count)
                                               : control_.write<std::uint64_t>(count_at, handle.member_count);
  if (!counted) return counted;
  for (std::uint32_t word = 0; word < profile_.mask_words(); ++word) {
    const std::uint64_t mask = mask_word(handle.member_count, word);
    auto done = control_.write<std::uint64_t>(base + map().member_mask + std::uint64_t{8} * word, mask);
    if (!done) return done;
  }
  return control_.write<std::uint64_t>(base + map().sequence, handle.sequence);
}

Result<void> Device::control_group(const gba_group_handle& handle, std::uint64_t value, const std::string& tried) {
  if (auto good = check(handle); !good) return good;
  const std::lock_guard lock(owned_mutex_);
  if (owned_[handle.group] == 0 || owned_[handle.group] != handle.key) {
    return fail(std::errc::operation_not_permitted, tried + "this port does not own it");
  }
  return control_.write<std::uint64_t>(map().block(handle.group) + map().control, value);
}

Result<void> Device::enable(const gba_group_handle& handle) {
  const std::string tried = "gba: " + backend_->path() + ": cannot enable " + group_name(handle) + ": ";
  auto written = control_group(handle, GBA_CONTROL_ENABLE | GBA_CONTROL_ARM | GBA_CONTROL_IRQ_EN, tried);
  if (!written) return written;
  const auto now = control_.read<std::uint64_t>(map().block(handle.group) + map().control);
  if (!now) return tl::make_unexpected(now.error());
  if ((*now & GBA_CONTROL_ENABLE) == 0) {
    return fail(std::errc{ESTALE}, tried + "the device did not take it (is the group in error, or reclaimed?)");
  }
  return {};
}

Result<void> Device::disable(const gba_group_handle& handle) {
  return control_group(handle, 0, "gba: " + backend_->path() + ": cannot disable " + group_name(handle) + ": ");
}

Result<void> Device::free_group(const gba_group_handle& handle) {
  if (auto good = check(handle); !good) return good;
  const std::lock_guard lock(owned_mutex_);
  std::uint32_t& key = owned_[handle.group];
  if (key != 0 && key != handle.key) {
    return fail(std::errc::no_such_file_or_directory, "gba: " + backend_->path() + ": cannot free " +
                                                          group_name(handle) + ": the handle is of an earlier group");
  }
  key = 0;
  const auto freed = commands_.run({.opcode = GBA_CMD_FREE, .group = static_cast<std::uint8_t>(handle.group)},
                                   "free " + group_name(handle));
  if (!freed) return tl::make_unexpected(freed.error());
  return {};
}

}  // namespace gba
