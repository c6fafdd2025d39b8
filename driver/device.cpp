// SPDX-License-Identifier: Apache-2.0
#include "driver/device.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <span>
#include <thread>
#include <utility>

#include "base/usable_processors.hpp"
#include "driver/report.hpp"
#include "uapi/gba_regs.h"

namespace gba {

namespace {

constexpr std::chrono::seconds kReadyTimeout{5};
constexpr std::chrono::milliseconds kReadyPoll{1};

constexpr const char* kFatal =
    "it reports a fatal error (FATAL) and does not work until it is reset: gba reset --yes DEVICE, through its "
    "privileged port (the physical function; with a gba-fake-device its --admin-socket)";

Error not_a_gba(const Backend& backend, const std::string& why) {
  return fail(std::errc::no_such_device, fmt::format("gba: {} is not a GBA: {}", backend.path(), why));
}

Result<void> check_identity(const Backend& backend, const Registers& control) {
  const auto magic = control.read<std::uint32_t>(GBA_REG_MAGIC);
  if (!magic) {
    return magic.error();
  }
  if (*magic != GBA_MAGIC_VALUE) {
    return not_a_gba(backend, fmt::format("its MAGIC register reads {}", *magic));
  }
  const auto version = control.read<std::uint32_t>(GBA_REG_VERSION);
  if (!version) {
    return version.error();
  }
  const std::uint64_t major = GBA_FIELD_GET(GBA_VERSION_MAJOR_FIELD, *version);
  if (major != GBA_VERSION_MAJOR) {
    return fail(
        std::errc::protocol_error,
        fmt::format("gba: cannot open {}: its registers have version {}, this library knows version {} (update libgba)",
                    backend.path(), major, GBA_VERSION_MAJOR));
  }
  return {};
}

enum class IfFatal { kRefuse, kAccept };

/// Waits for READY; the device may be in the middle of a reset. `tried` begins the text of an Error.
Result<void> wait_ready(const Registers& control, const std::string& tried, IfFatal if_fatal = IfFatal::kRefuse) {
  const Deadline deadline = Deadline::after(kReadyTimeout);
  for (;;) {
    const auto status = control.read<std::uint64_t>(GBA_REG_DEV_STATUS);
    if (!status) {
      return status.error();
    }
    if (*status == GBA_ALL_ONES) {
      return fail(std::errc::no_such_device, tried + text_of(Loss::kRemoved));
    }
    if ((*status & GBA_DEV_STATUS_FATAL) != 0) {
      if (if_fatal == IfFatal::kAccept) {
        return {};
      }
      return fail(std::errc::io_error, tried + kFatal);
    }
    if ((*status & GBA_DEV_STATUS_READY) != 0) {
      return {};
    }
    if (deadline.passed()) {
      return fail(std::errc::no_such_device, tried + "it does not become ready");
    }
    std::this_thread::sleep_for(kReadyPoll);
  }
}

Result<DeviceFacts> read_facts(const Backend& backend, const Profile& profile, const Registers& control) {
  const auto version = control.read<std::uint32_t>(GBA_REG_VERSION);
  if (!version) {
    return version.error();
  }
  const auto capabilities = control.read<std::uint64_t>(GBA_REG_CAPS);
  if (!capabilities) {
    return capabilities.error();
  }
  const auto port = control.read<std::uint32_t>(GBA_REG_PORT_ID);
  if (!port) {
    return port.error();
  }
  const DeviceFacts facts{.version = *version,
                          .capabilities = *capabilities,
                          .port = *port,
                          .groups = static_cast<std::uint32_t>(GBA_FIELD_GET(GBA_CAPS_GROUPS, *capabilities)),
                          .members = static_cast<std::uint32_t>(GBA_FIELD_GET(GBA_CAPS_MEMBERS, *capabilities))};
  if (facts.groups == 0 || facts.groups > profile.groups || facts.members == 0 || facts.members > profile.members) {
    return not_a_gba(backend, fmt::format("it has {} groups of {} members", facts.groups, facts.members));
  }
  return facts;
}

Result<DeviceFacts> identify(const Backend& backend, const Profile& profile, const Registers& control,
                             IfFatal if_fatal) {
  if (auto good = check_identity(backend, control); !good) {
    return good.error();
  }
  const std::string tried = fmt::format("gba: cannot open {}: ", backend.path());
  if (auto ready = wait_ready(control, tried, if_fatal); !ready) {
    return ready.error();
  }
  return read_facts(backend, profile, control);
}

void copy_text(std::span<char> to, const std::string& text) {
  const std::size_t length = std::min(text.size(), to.size() - 1);
  std::copy_n(text.begin(), length, to.begin());
  to[length] = '\0';
}

}  // namespace

Device::Device(std::unique_ptr<Backend> backend, Registers control, const Profile& profile, const DeviceFacts& facts,
               std::shared_ptr<IovaSpace> iovas, std::uint64_t page)
    : backend_(std::move(backend)),
      control_(std::move(control)),
      profile_(profile),
      facts_(facts),
      commands_(*backend_, control_),
      iovas_(std::move(iovas)),
      flags_(*backend_, *iovas_, page) {}

Result<std::unique_ptr<Device>> Device::open(std::unique_ptr<Backend> backend, std::span<const PciId> expected,
                                             FlagPlace flags, bool even_fatal) {
  auto config = PciConfig::open(*backend, expected);
  if (!config) {
    return config.error();
  }
  if (auto enabled = config->enable_memory(); !enabled) {
    return enabled.error();
  }
  auto control = Registers::open(*backend, GBA_REGION_CONTROL, GBA_BAR0_SIZE);
  if (!control) {
    return control.error();
  }
  const Profile& profile = profile_of(config->id());
  const auto facts = identify(*backend, profile, *control, even_fatal ? IfFatal::kAccept : IfFatal::kRefuse);
  if (!facts) {
    return facts.error();
  }
  // Now that it is known to be a GBA, it may write to memory.
  if (auto enabled = config->enable_bus_master(); !enabled) {
    return enabled.error();
  }

  const auto limits = backend->dma_limits();
  if (!limits) {
    return limits.error();
  }
  auto iovas = backend->iova_space(*limits);
  if (!iovas) {
    return iovas.error();
  }

  std::unique_ptr<Device> device(
      new Device(std::move(backend), *std::move(control), profile, *facts, *std::move(iovas), limits->page));
  if (auto done = device->set_up_doorbells(); !done) {
    return done.error();
  }
  if (auto done = device->set_up_interrupts(); !done) {
    return done.error();
  }
  if (auto done = device->flags_.choose(flags, device->has(GBA_CAPS_BAR_FLAGS)); !done) {
    return done.error();
  }
  device->backend_->set_farewell([port = device.get()] { port->leave_all(); });
  return device;
}

Device::~Device() {
  status_.reset();
  if (backend_->resets_on_close() || backend_->lost()) {
    return;
  }
  // Otherwise what this port has in the switch would stay.
  (void)guarded([this] {
    leave_all();
    return 0;
  });
}

void Device::leave_all() {
  const auto run = [&](std::uint8_t opcode, std::size_t group) {
    return commands_.run({.opcode = opcode, .group = static_cast<std::uint8_t>(group)}, "leave it").has_value();
  };
  const std::scoped_lock lock(memberships_.mutex, owned_mutex_);
  for (std::size_t group = 0; group < kMaxGroups; ++group) {
    if (memberships_.holder[group] != 0 && run(GBA_CMD_LEAVE, group)) {
      memberships_.holder[group] = 0;
    }
    if (owned_[group] != 0 && run(GBA_CMD_FREE, group)) {
      owned_[group] = 0;
    }
  }
}

Result<void> Device::set_up_doorbells() {
  const auto info = backend_->region_info(GBA_REGION_DOORBELLS);
  if (!info) {
    return info.error();
  }
  if (info->size < GBA_BAR2_SIZE || !info->mappable) {
    return not_a_gba(*backend_, "its doorbells cannot be mapped");
  }
  auto mapping = BarMapping::make(*backend_, GBA_REGION_DOORBELLS, GBA_BAR2_SIZE);
  if (!mapping) {
    return mapping.error();
  }
  doorbells_ = *std::move(mapping);
  if (!has(GBA_CAPS_WAKEUP)) {
    return {};
  }
  auto eventfd = backend_->doorbell_eventfd(GBA_REGION_DOORBELLS, GBA_DOORBELL_WAKEUP);
  if (!eventfd) {
    return eventfd.error();
  }
  kick_eventfd_ = *std::move(eventfd);
  return {};
}

Result<void> Device::set_up_interrupts() {
  const auto vectors = backend_->irq_count(GBA_IRQ_MSIX);
  if (!vectors) {
    return vectors.error();
  }
  interrupts_ = has(GBA_CAPS_NOTIFY) && *vectors >= facts_.groups;
  return {};
}

MmioWord<std::uint64_t> Device::doorbell(std::uint32_t group) const {
  return MmioRegion(doorbells_.bytes()).word<std::uint64_t>(GBA_DOORBELL_SLOT(group));
}

MmioWord<std::uint32_t> Device::wakeup() const {
  if (!has(GBA_CAPS_WAKEUP)) {
    return {};
  }
  return MmioRegion(doorbells_.bytes()).word<std::uint32_t>(GBA_DOORBELL_WAKEUP);
}

SpinPolicy Device::spin(std::uint32_t members) const {
  // A device that is a process takes a processor of its own, and so does each of its members: all are on this machine.
  return spin_policy(base::usable_processors(), has(GBA_CAPS_WAKEUP) ? members + 1 : 1);
}

void Device::kick() {
  if (backend_->lost()) {
    return;
  }
  const std::uint64_t one = 1;
  if (!kick_eventfd_) {
    control_.post<std::uint64_t>(GBA_REG_KICK, one);
  } else if (::write(kick_eventfd_.get(), &one, sizeof(one)) != sizeof(one)) {
    backend_->check_lost();
  }
}

Result<void> Device::check_condition() {
  if (backend_->check_lost()) {
    return backend_->loss_error();
  }
  const auto status = control_.read<std::uint64_t>(GBA_REG_DEV_STATUS);
  if (!status) {
    return status.error();
  }
  if (*status == GBA_ALL_ONES) {
    backend_->declare_lost(Loss::kRemoved);
    return backend_->loss_error();
  }
  const std::string text = fmt::format("gba: {}: ", backend_->path());
  if ((*status & GBA_DEV_STATUS_FATAL) != 0) {
    return fail(std::errc::io_error, text + kFatal);
  }
  if ((*status & GBA_DEV_STATUS_LINK_UP) == 0) {
    return fail(std::errc::network_down, fmt::format("{}the link of this port, {}, is down", text, facts_.port));
  }
  return {};
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
  info.map = profile_.id;
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
    if (!value) {
      return value.error();
    }
    *counter = *value;
  }
  return counters;
}

Result<void> Device::reset() {
  const std::uint64_t refused = GBA_FAULT_BIT(GBA_FAULT_NOT_PERMITTED);
  // An old fault of this kind would look like the answer (uapi rules 3 and 23).
  if (auto cleared = control_.write<std::uint64_t>(GBA_REG_FAULT, refused); !cleared) {
    return cleared;
  }
  auto written = control_.write<std::uint64_t>(GBA_REG_DEV_CONTROL, GBA_DEV_CONTROL_RESET);
  if (!written) {
    return written;
  }
  const auto faults = control_.read<std::uint64_t>(GBA_REG_FAULT);
  if (!faults) {
    return faults.error();
  }
  if (*faults == GBA_ALL_ONES) {
    backend_->declare_lost(Loss::kRemoved);
    return backend_->loss_error();
  }
  const std::string tried = fmt::format("gba: cannot reset {}: ", backend_->path());
  if ((*faults & refused) == 0) {
    return wait_ready(control_, tried);
  }
  (void)control_.write<std::uint64_t>(GBA_REG_FAULT, refused);
  return fail(std::errc::operation_not_permitted,
              fmt::format("{}port {} is not the privileged one (that is the physical function; with a gba-fake-device "
                          "its --admin-socket)",
                          tried, facts_.port));
}

}  // namespace gba
