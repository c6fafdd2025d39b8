// SPDX-License-Identifier: Apache-2.0
// An open GBA: one port of the switch.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "driver/backend.hpp"
#include "driver/bar_mapping.hpp"
#include "driver/dma_memory.hpp"
#include "driver/flag_memory.hpp"
#include "driver/mmio.hpp"
#include "driver/pci.hpp"
#include "driver/profile.hpp"
#include "driver/registers.hpp"
#include "driver/status_server.hpp"
#include "driver/wait.hpp"
#include "gba/gba.h"
#include "uapi/gba_device.h"
#include "uapi/gba_regs.h"

namespace gba {

/// What the device said about itself when it was opened.
struct DeviceFacts {
  std::uint32_t version = 0;
  std::uint64_t capabilities = 0;
  std::uint32_t port = 0;
  std::uint32_t groups = 0;
  std::uint32_t members = 0;
};

/// Uapi rule 37.
struct GroupLimit {
  std::uint64_t most = 0;  // groups that a port may have; 0: the device has no limit
  std::uint64_t held = 0;  // those that count for this port
};

/// Which membership holds this port's place in each group. A group can be freed and joined again while the object of an
/// old membership still lives; the old one must not end the new one.
struct Memberships {
  ForkMutex mutex;  // guards what follows, from the command that changes a place to the change
  std::array<std::uint64_t, kMaxGroups> holder{};  // id of the membership, 0: none
  std::uint64_t last_id = 0;
};

/// Thread-safe. Members of its groups (driver/membership.hpp) hold a reference to it.
class Device {
 public:
  /// Checks that there is a GBA of a known version behind `backend` and makes it ready. One that reports FATAL is
  /// refused unless `even_fatal` is set. Errors: those of gba_open.
  static Result<std::unique_ptr<Device>> open(std::unique_ptr<Backend> backend, std::span<const PciId> expected,
                                              FlagPlace flags = FlagPlace::kAuto, bool even_fatal = false);

  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  [[nodiscard]] gba_device_info info() const;
  Result<gba_device_counters> counters();
  /// Errors: those of gba_device_reset.
  Result<void> reset();

  /// Errors of these four: those of gba_group_alloc, gba_group_enable, gba_group_disable and gba_group_free.
  Result<gba_group_handle> alloc(std::uint32_t member_count, std::uint64_t sequence);
  Result<void> enable(const gba_group_handle& handle);
  Result<void> disable(const gba_group_handle& handle);
  Result<void> free_group(const gba_group_handle& handle);
  /// Is this a handle that this device could have given? Fails with invalid_argument.
  Result<void> check(const gba_group_handle& handle) const;

  [[nodiscard]] const DeviceFacts& facts() const { return facts_; }
  [[nodiscard]] const Profile& profile() const { return profile_; }
  [[nodiscard]] const GroupMap& map() const { return profile_.map; }
  [[nodiscard]] bool has(std::uint64_t capability) const { return (facts_.capabilities & capability) != 0; }
  /// Its groups have ROUND_AGE and MEMBER_PORT.
  [[nodiscard]] bool tells_ports() const { return GBA_FIELD_GET(GBA_VERSION_MINOR_FIELD, facts_.version) >= 1; }
  /// Errors: those of a lost device.
  Result<GroupLimit> group_limit() const;
  [[nodiscard]] bool can_interrupt() const { return interrupts_; }
  /// How long a member spins in a group of `members`.
  [[nodiscard]] SpinPolicy spin(std::uint32_t members) const;

  Backend& backend() { return *backend_; }
  Registers& control() { return control_; }
  Commands& commands() { return commands_; }
  FlagMemory& flags() { return flags_; }
  Memberships& memberships() { return memberships_; }

  [[nodiscard]] MmioWord<std::uint64_t> doorbell(std::uint32_t group) const;
  /// Empty if the device never sleeps.
  [[nodiscard]] MmioWord<std::uint32_t> wakeup() const;
  /// Wakes the device, which reported that it sleeps (uapi rule 14). A failure shows as a lost device.
  void kick();

  /// From now on other processes can look at the device, and its loss is noticed without a call. `key` is equal for all
  /// names of the device.
  void serve_status(const std::string& key) { status_ = StatusServer::start(*this, key); }

  /// Is the device lost, fatal, or its link down? Errors: those of gba_device_check.
  Result<void> check_condition();

 private:
  Device(std::unique_ptr<Backend> backend, Registers control, const Profile& profile, const DeviceFacts& facts,
         std::shared_ptr<IovaSpace> iovas, std::uint64_t page);

  Result<void> set_up_doorbells();
  Result<void> set_up_interrupts();
  /// Leaves and frees all groups of this port, so that the other members learn of it if the kernel takes the device
  /// away in good order (the kernel does not reset it).
  void leave_all();
  [[nodiscard]] Error with_limit(const Error& error) const;
  Result<void> configure(const gba_group_handle& handle);
  /// CONTROL of a group. What this port wrote to the device before has arrived then: a read does not pass a write.
  Result<std::uint64_t> control_of(std::uint32_t group);
  /// Writes CONTROL of a group that this port owns. `tried` begins the text of an Error.
  Result<void> control_group(const gba_group_handle& handle, std::uint64_t value, const std::string& tried);

  const std::unique_ptr<Backend> backend_;  // first: everything below uses it
  Registers control_;
  const Profile& profile_;
  const DeviceFacts facts_;
  BarMapping doorbells_;
  base::UniqueFd kick_eventfd_;
  bool interrupts_ = false;
  Commands commands_;
  const std::shared_ptr<IovaSpace> iovas_;
  FlagMemory flags_;
  Memberships memberships_;

  ForkMutex owned_mutex_;                          // guards what follows
  std::array<std::uint32_t, kMaxGroups> owned_{};  // keys of the groups that this port owns, else 0
  std::unique_ptr<StatusServer> status_;           // it uses what is above
};

}  // namespace gba
