// SPDX-License-Identifier: Apache-2.0
// This process's port of the switch, which may be lost and come back, and the group that is held through it. All of
// driver/barrier/ uses the device by gba/gba.h alone.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/forks.hpp"
#include "driver/result.hpp"
#include "gba/barrier.h"

namespace gba::barrier {

/// An open device; closed when the last user of it is gone.
using OpenDevice = std::shared_ptr<gba_device>;

struct LeaveGroup {
  // A lost device needs no leaving: nothing to report.
  void operator()(gba_group* group) const { gba_group_leave(group); }
};
using Membership = std::unique_ptr<gba_group, LeaveGroup>;

/// A group that this process's port owns; freed with the object.
class OwnedGroup {
 public:
  /// Allocated and enabled; its first barrier is `sequence` + 1.
  static Result<OwnedGroup> make(const OpenDevice& device, std::uint32_t members, std::uint64_t sequence);

  OwnedGroup(OwnedGroup&&) = default;
  OwnedGroup(const OwnedGroup&) = delete;
  OwnedGroup& operator=(const OwnedGroup&) = delete;
  OwnedGroup& operator=(OwnedGroup&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~OwnedGroup();

  [[nodiscard]] const gba_group_handle& handle() const { return handle_; }
  /// Lets no more arrivals in: the first step of an end in good order.
  void disable() const { gba_group_disable(device_.get(), &handle_); }

 private:
  OwnedGroup(OpenDevice device, const gba_group_handle& handle) : device_(std::move(device)), handle_(handle) {}

  OpenDevice device_;
  gba_group_handle handle_;
};

/// What one member holds of a group.
struct HeldGroup {
  std::optional<OwnedGroup> owned;  // only the owner has it; destroyed after the membership
  Membership membership;
};

/// Shared by all barriers of a process; thread-safe.
///
/// A suspect device is not used before it has been found to be healthy. That may take seconds where a device
/// does not answer, and as long as it likes where one is away. So a thread of its own looks for it, in time and not in
/// barriers, from the first request until the device is healthy.
///
/// A forked child does not have that thread, and other threads of its parent may have been in any of these calls. To
/// the child the device is lost and stays so, and nothing here is touched: calls return at once, and the memory stays.
class Port {
 public:
  /// nullptr: the device that gba_open(NULL) finds.
  explicit Port(const char* path)
      : path_(path == nullptr ? std::nullopt : std::optional<std::string>(path)), fork_(base::forks()) {}
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  ~Port();

  /// The first time, on the calling thread.
  Result<void> open();
  /// nullptr: it is not known to be healthy.
  [[nodiscard]] OpenDevice healthy();
  void mark_suspect();
  /// If the device is suspect: looks at it, and opens a lost one again, until it is healthy.
  void reopen();
  /// The same for a caller that knows that the device is back: it does not wait for the next look.
  void reopen_now();
  /// Has the thread leave and free a group that is lost, or was not used, before it looks at the device: one that does
  /// not answer would keep the caller waiting.
  void retire(HeldGroup group);
  /// Waits until it is healthy.
  void await_healthy(std::chrono::nanoseconds limit);
  /// Waits for the outcome of the look that is under way, if there is one.
  void await_look(std::chrono::nanoseconds limit);

 private:
  struct State {
    OpenDevice device;  // nullptr: none is open, or the thread has it
    bool healthy = false;
  };
  /// What the thread and the calls share.
  struct Shared {
    std::mutex mutex;  // guards what follows
    std::condition_variable changed;
    State state;
    std::vector<HeldGroup> retired;  // for the thread to leave; destroyed before their device
    bool looking = false;            // the thread is, or will be soon
    bool pausing = false;            // between two looks
    bool closing = false;
    std::future<void> looked;
  };

  static State look_after(OpenDevice device, const std::optional<std::string>& path);
  void look_for_device();
  void start_looking();
  /// Locks the mutex; nothing in a forked child.
  [[nodiscard]] std::unique_lock<std::mutex> hold();

  const std::optional<std::string> path_;
  const unsigned fork_;  // forks() of the process that the thread is in
  std::unique_ptr<Shared> shared_ = std::make_unique<Shared>();
};

/// One member's place in groups of the device, and the port it reaches them by.
struct MemberPlace {
  Port* port;  // nullptr: it shares another member's
  std::uint32_t members, member;

  [[nodiscard]] Result<OwnedGroup> make_group(std::uint64_t sequence) const;
  [[nodiscard]] Result<Membership> join(const gba_group_handle& handle) const;

 private:
  [[nodiscard]] Result<OpenDevice> device() const;
};

}  // namespace gba::barrier

struct gba_barrier_port : gba::barrier::Port {
  using Port::Port;
};
