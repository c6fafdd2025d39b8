// SPDX-License-Identifier: Apache-2.0
// This PE's port of the switch, and what is held through it.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <utility>

#include "gba/gba.h"
#include "shmem/result.hpp"

namespace shmem {

/// An open device; closed with the last one who holds it.
using GbaDevice = std::shared_ptr<gba_device>;

/// Opens the GBA that the environment names, or, where it names none and the machine has several functions, the one of
/// `pe` of this node. The Error says why there is none, which is a normal way to run.
Result<GbaDevice> open_gba(int pe);

/// The device of this PE, which may be lost and come back. Shared by all teams of the PE; thread-safe.
///
/// A device that somebody had trouble with is not given to anybody before it has been found well. That may take seconds
/// where a device does not answer, so it is done by a thread of its own, when a team asks for it.
class GbaPort {
 public:
  using Opener = std::function<Result<GbaDevice>()>;

  explicit GbaPort(Opener opener) : opener_(std::move(opener)) {}

  /// The first time, on the calling thread.
  Result<void> open();
  /// Gives it up for good: it is left to others.
  void close();
  /// nullptr: there is none, or it is not known to be well.
  [[nodiscard]] GbaDevice well();
  /// Somebody had trouble with `device`.
  void doubt();
  /// Begins to look after a device that is not known to be well: a lost one is opened anew.
  void mend();
  [[nodiscard]] bool mending();
  /// Waits for what mend() began.
  void await_mended(std::chrono::milliseconds limit);

 private:
  struct State {
    GbaDevice device;  // nullptr: none is open, or mend() has it
    bool well = false;
  };

  static State look_after(GbaDevice device, const Opener& opener);
  void collect();

  const Opener opener_;
  std::mutex mutex_;  // guards what follows
  State state_;
  std::future<State> mended_;  // last: it waits for the thread
};

struct LeaveGroup {
  // A lost device needs no leaving: nothing to report.
  void operator()(gba_group* group) const { gba_group_leave(group); }
};
using GbaMembership = std::unique_ptr<gba_group, LeaveGroup>;

/// A group that this PE's port owns, until the object goes.
class OwnedGroup {
 public:
  /// Allocated and enabled; its first barrier is `sequence` + 1.
  static Result<OwnedGroup> make(const GbaDevice& device, std::uint32_t members, std::uint64_t sequence);

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
  void disable() { gba_group_disable(device_.get(), &handle_); }

 private:
  OwnedGroup(GbaDevice device, const gba_group_handle& handle) : device_(std::move(device)), handle_(handle) {}

  GbaDevice device_;
  gba_group_handle handle_;
};

}  // namespace shmem
