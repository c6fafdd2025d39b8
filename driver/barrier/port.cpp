// SPDX-License-Identifier: Apache-2.0
#include "driver/barrier/port.hpp"

#include "driver/barrier/pace.hpp"

#include <cerrno>
#include <exception>
#include <utility>

namespace gba::barrier {
namespace {

// Pauses between two looks for a device that is away.
constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{800};

enum class Condition { kHealthy, kFailing, kLost };

Condition condition_of(gba_device* device) {
  switch (gba_device_check(device)) {
    case 0:
      return Condition::kHealthy;
    case -EIO:
    case -ENETDOWN:
      return Condition::kFailing;
    default:
      return Condition::kLost;
  }
}

/// What a failed call of gba.h said.
Error failure(int error) {
  return fail(std::errc{-error}, gba_error_text());
}

Result<OpenDevice> open_device(const std::optional<std::string>& path) {
  gba_device* device = nullptr;
  if (const int error = gba_open(path ? path->c_str() : nullptr, &device); error != 0) {
    return failure(error);
  }
  return OpenDevice(device, gba_close);
}

}  // namespace

Result<void> Port::open() {
  auto opened = open_device(path_);
  if (!opened) {
    return opened.error();
  }
  const std::lock_guard lock(mutex_);
  state_ = {.device = *std::move(opened), .healthy = true};
  return {};
}

Port::~Port() {
  const std::lock_guard lock(mutex_);
  closing_ = true;
  changed_.notify_all();
}

OpenDevice Port::healthy() {
  const std::lock_guard lock(mutex_);
  return state_.healthy ? state_.device : nullptr;
}

void Port::mark_suspect() {
  const std::lock_guard lock(mutex_);
  state_.healthy = false;
}

Port::State Port::look_after(OpenDevice device, const std::optional<std::string>& path) {
  if (device != nullptr) {
    const Condition condition = condition_of(device.get());
    if (condition != Condition::kLost) {
      return {.device = std::move(device), .healthy = condition == Condition::kHealthy};
    }
    device.reset();  // before its successor is opened: a function has one opener
  }
  auto opened = open_device(path);
  return opened ? State{.device = *std::move(opened), .healthy = true} : State{};
}

void Port::look_for_device() {
  Pace pace(kFirstPause, kLongestPause);
  std::unique_lock lock(mutex_);
  while (!closing_ && (!state_.healthy || !retired_.empty())) {
    if (!retired_.empty()) {
      auto groups = std::exchange(retired_, {});
      lock.unlock();
      groups.clear();
      lock.lock();
      continue;
    }
    OpenDevice device = std::exchange(state_.device, nullptr);
    lock.unlock();
    State found;
    try {
      found = look_after(std::move(device), path_);
    } catch (const std::exception&) {
      // No memory is available now: as if the device had not come back yet.
    }
    lock.lock();
    state_ = std::move(found);
    if (!state_.healthy) {
      pace.failed();
      pausing_ = true;
      changed_.notify_all();
      changed_.wait_until(lock, pace.next(), [this] { return closing_ || !pausing_; });
      pausing_ = false;
    }
  }
  looking_ = false;
  changed_.notify_all();
}

void Port::reopen() {
  const std::lock_guard lock(mutex_);
  start_looking();
}

void Port::retire(HeldGroup group) {
  const std::lock_guard lock(mutex_);
  try {
    retired_.push_back(std::move(group));
  } catch (const std::exception&) {
    return;  // no memory is available now: it is left here
  }
  start_looking();
}

void Port::reopen_now() {
  const std::lock_guard lock(mutex_);
  start_looking();
  if (std::exchange(pausing_, false)) {
    changed_.notify_all();
  }
}

void Port::start_looking() {
  if (looking_ || (state_.healthy && retired_.empty())) {
    return;
  }
  try {
    looked_ = std::async(std::launch::async, [this] { look_for_device(); });  // the last one has let go of the mutex
    looking_ = true;
  } catch (const std::exception&) {
    // No thread or no memory is available now: as if the device had not come back yet.
  }
}

void Port::await_healthy(std::chrono::nanoseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [this] { return state_.healthy || !looking_; });
}

void Port::await_look(std::chrono::nanoseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [this] { return !looking_ || pausing_; });
}

Result<OwnedGroup> OwnedGroup::make(const OpenDevice& device, std::uint32_t members, std::uint64_t sequence) {
  gba_group_handle handle{};
  if (const int error = gba_group_alloc(device.get(), members, sequence, &handle); error != 0) {
    return failure(error);
  }
  OwnedGroup group(device, handle);
  if (const int error = gba_group_enable(device.get(), &handle); error != 0) {
    return failure(error);
  }
  return group;
}

OwnedGroup::~OwnedGroup() {
  if (device_ != nullptr) {
    gba_group_free(device_.get(), &handle_);  // fails only with the device, and then it is free
  }
}

Result<OpenDevice> Place::device() const {
  if (port == nullptr) {
    return fail(std::errc::no_such_device, "this member has no port");
  }
  auto device = port->healthy();
  if (device == nullptr) {
    return fail(std::errc::no_such_device, "the device is lost");
  }
  return device;
}

Result<OwnedGroup> Place::make_group(std::uint64_t sequence) const {
  const auto open = device();
  return open ? OwnedGroup::make(*open, members, sequence) : open.error();
}

Result<Membership> Place::join(const gba_group_handle& handle) const {
  const auto open = device();
  if (!open) {
    return open.error();
  }
  gba_group* group = nullptr;
  if (const int error = gba_group_join(open->get(), &handle, member, &group); error != 0) {
    return failure(error);
  }
  return Membership(group);
}

}  // namespace gba::barrier
