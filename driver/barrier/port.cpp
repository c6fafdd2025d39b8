// SPDX-License-Identifier: Apache-2.0
#include "driver/barrier/port.hpp"

#include "base/signals_blocked.hpp"
#include "driver/barrier/pace.hpp"

#include <cerrno>
#include <exception>
#include <tuple>
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
  const std::lock_guard lock(shared_->mutex);
  shared_->state = {.device = *std::move(opened), .healthy = true};
  return {};
}

Port::~Port() {
  auto lock = hold();
  if (!lock) {
    std::ignore = shared_.release();
    return;
  }
  shared_->closing = true;
  shared_->changed.notify_all();
  lock.unlock();
  if (shared_->looked.valid()) {
    shared_->looked.wait();
  }
}

std::unique_lock<std::mutex> Port::hold() {
  return fork_ == base::forks() ? std::unique_lock(shared_->mutex) : std::unique_lock<std::mutex>();
}

OpenDevice Port::healthy() {
  const auto lock = hold();
  return lock && shared_->state.healthy ? shared_->state.device : nullptr;
}

void Port::mark_suspect() {
  if (const auto lock = hold()) {
    shared_->state.healthy = false;
  }
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
  std::unique_lock lock(shared_->mutex);
  while (!shared_->closing && (!shared_->state.healthy || !shared_->retired.empty())) {
    if (!shared_->retired.empty()) {
      auto groups = std::exchange(shared_->retired, {});
      lock.unlock();
      groups.clear();
      lock.lock();
      continue;
    }
    OpenDevice device = std::exchange(shared_->state.device, nullptr);
    lock.unlock();
    State found;
    try {
      found = look_after(std::move(device), path_);
    } catch (const std::exception&) {
      // No memory is available now: as if the device had not come back yet.
    }
    lock.lock();
    shared_->state = std::move(found);
    if (!shared_->state.healthy) {
      pace.failed();
      shared_->pausing = true;
      shared_->changed.notify_all();
      shared_->changed.wait_until(lock, pace.next(), [this] { return shared_->closing || !shared_->pausing; });
      shared_->pausing = false;
    }
  }
  shared_->looking = false;
  shared_->changed.notify_all();
}

void Port::reopen() {
  if (const auto lock = hold()) {
    start_looking();
  }
}

void Port::retire(HeldGroup group) {
  const auto lock = hold();
  if (!lock) {
    return;
  }
  try {
    shared_->retired.push_back(std::move(group));
  } catch (const std::exception&) {
    return;  // no memory is available now: it is left here
  }
  start_looking();
}

void Port::reopen_now() {
  const auto lock = hold();
  if (!lock) {
    return;
  }
  start_looking();
  if (std::exchange(shared_->pausing, false)) {
    shared_->changed.notify_all();
  }
}

void Port::start_looking() {
  if (shared_->looking || (shared_->state.healthy && shared_->retired.empty())) {
    return;
  }
  try {
    const base::SignalsBlocked masked;
    shared_->looked =
        std::async(std::launch::async, [this] { look_for_device(); });  // the last one has let go of the mutex
    shared_->looking = true;
  } catch (const std::exception&) {
    // No thread or no memory is available now: as if the device had not come back yet.
  }
}

void Port::await_healthy(std::chrono::nanoseconds limit) {
  if (auto lock = hold()) {
    shared_->changed.wait_for(lock, limit, [this] { return shared_->state.healthy || !shared_->looking; });
  }
}

void Port::await_look(std::chrono::nanoseconds limit) {
  if (auto lock = hold()) {
    shared_->changed.wait_for(lock, limit, [this] { return !shared_->looking || shared_->pausing; });
  }
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

Result<OpenDevice> MemberPlace::device() const {
  if (port == nullptr) {
    return fail(std::errc::no_such_device, "this member has no port");
  }
  auto device = port->healthy();
  if (device == nullptr) {
    return fail(std::errc::no_such_device, "the device is lost");
  }
  return device;
}

Result<OwnedGroup> MemberPlace::make_group(std::uint64_t sequence) const {
  const auto open = device();
  return open ? OwnedGroup::make(*open, members, sequence) : open.error();
}

Result<Membership> MemberPlace::join(const gba_group_handle& handle) const {
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
