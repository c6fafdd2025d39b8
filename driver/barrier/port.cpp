// SPDX-License-Identifier: Apache-2.0
#include "driver/barrier/port.hpp"

#include <cerrno>
#include <exception>

namespace gba::barrier {
namespace {

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

OpenDevice Port::healthy() {
  const std::lock_guard lock(mutex_);
  collect();
  return state_.healthy ? state_.device : nullptr;
}

void Port::mark_suspect() {
  const std::lock_guard lock(mutex_);
  collect();
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

void Port::reopen() {
  const std::lock_guard lock(mutex_);
  collect();
  if (state_.healthy || reopened_.valid()) {
    return;
  }
  try {
    reopened_ = std::async(std::launch::async, look_after, state_.device, path_);
    state_.device.reset();
  } catch (const std::exception&) {
    // No thread or no memory is available now: as if the device had not come back yet.
  }
}

bool Port::reopening() {
  const std::lock_guard lock(mutex_);
  collect();
  return reopened_.valid();
}

void Port::await_reopened(std::chrono::nanoseconds limit) {
  const std::lock_guard lock(mutex_);
  if (reopened_.valid()) {
    reopened_.wait_for(limit);
  }
}

void Port::collect() {
  if (reopened_.valid() && reopened_.wait_for(std::chrono::seconds{0}) == std::future_status::ready) {
    state_ = reopened_.get();
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
