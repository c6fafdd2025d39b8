// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/gba_port.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>
#include <vector>

namespace shmem {
namespace {

enum class Condition { kWell, kPoor, kLost };

Condition condition_of(gba_device* device) {
  switch (gba_device_check(device)) {
    case 0:
    case -EOVERFLOW:  // of its interrupts only
      return Condition::kWell;
    case -EIO:
    case -ENETDOWN:
      return Condition::kPoor;
    default:
      return Condition::kLost;
  }
}

/// The PCI address of the function that `pe` opens; "": the device that gba_open() finds.
Result<std::string> function_of(int pe) {
  const char* const named = std::getenv("GBA_DEVICE");
  std::uint32_t count = 0;
  if ((named != nullptr && *named != '\0') || gba_list(nullptr, 0, &count) != 0 || count < 2) {
    return std::string();
  }
  std::vector<std::array<char, GBA_ADDRESS_SIZE>> functions(count);
  gba_list(reinterpret_cast<char(*)[GBA_ADDRESS_SIZE]>(functions.data()), count, &count);
  const auto index = static_cast<std::size_t>(pe);
  if (index >= std::min<std::size_t>(count, functions.size())) {
    return fail(std::errc::device_or_resource_busy,
                "the " + std::to_string(count) + " functions of this machine's GBAs are for the PEs before this one");
  }
  return std::string(functions[index].data());
}

}  // namespace

Result<GbaDevice> open_gba(int pe) {
  const auto path = function_of(pe);
  if (!path) {
    return tl::make_unexpected(path.error());
  }
  gba_device* device = nullptr;
  const int error = gba_open(path->empty() ? nullptr : path->c_str(), &device);
  if (error != 0) {
    return fail(std::errc{-error}, gba_error_text());
  }
  return GbaDevice(device, gba_close);
}

Result<void> GbaPort::open() {
  const std::lock_guard lock(mutex_);
  auto opened = opener_();
  if (!opened) {
    return tl::make_unexpected(opened.error());
  }
  state_ = {*std::move(opened), true};
  return {};
}

void GbaPort::close() {
  const std::lock_guard lock(mutex_);
  state_ = {};
}

GbaDevice GbaPort::well() {
  const std::lock_guard lock(mutex_);
  collect();
  return state_.well ? state_.device : nullptr;
}

void GbaPort::doubt() {
  const std::lock_guard lock(mutex_);
  collect();
  state_.well = false;
}

GbaPort::State GbaPort::look_after(GbaDevice device, const Opener& opener) {
  if (device != nullptr) {
    const Condition condition = condition_of(device.get());
    if (condition != Condition::kLost) {
      return {std::move(device), condition == Condition::kWell};
    }
    device.reset();  // before its successor is opened: a function has one opener
  }
  auto opened = opener();
  return opened ? State{*std::move(opened), true} : State{};
}

void GbaPort::mend() {
  const std::lock_guard lock(mutex_);
  collect();
  if (state_.well || mended_.valid()) {
    return;
  }
  try {
    mended_ = std::async(std::launch::async, look_after, state_.device, opener_);
    state_.device.reset();
  } catch (const std::system_error&) {
    // No thread is to be had now: as if the device had not come back yet.
  }
}

bool GbaPort::mending() {
  const std::lock_guard lock(mutex_);
  collect();
  return mended_.valid();
}

void GbaPort::await_mended(std::chrono::milliseconds limit) {
  const std::lock_guard lock(mutex_);
  if (mended_.valid()) {
    mended_.wait_for(limit);
  }
}

void GbaPort::collect() {
  if (mended_.valid() && mended_.wait_for(std::chrono::seconds{0}) == std::future_status::ready) {
    state_ = mended_.get();
  }
}

Result<OwnedGroup> OwnedGroup::make(const GbaDevice& device, std::uint32_t members, std::uint64_t sequence) {
  gba_group_handle handle{};
  if (const int error = gba_group_alloc(device.get(), members, sequence, &handle); error != 0) {
    return fail(std::errc{-error}, gba_error_text());
  }
  OwnedGroup group(device, handle);
  if (const int error = gba_group_enable(device.get(), &handle); error != 0) {
    return fail(std::errc{-error}, gba_error_text());
  }
  return group;
}

OwnedGroup::~OwnedGroup() {
  if (device_ != nullptr) {
    gba_group_free(device_.get(), &handle_);  // fails only with the device, and then it is free
  }
}

}  // namespace shmem
