// SPDX-License-Identifier: Apache-2.0
// libgba's handles as objects, and its failures.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "driver/tool/invocation.hpp"
#include "driver/tool/output.hpp"
#include "gba/gba.h"

namespace tool {

struct CloseDevice {
  void operator()(gba_device* device) const { gba_close(device); }
};
using DevicePointer = std::unique_ptr<gba_device, CloseDevice>;

struct LeaveGroup {
  void operator()(gba_group* group) const { gba_group_leave(group); }
};
using GroupPointer = std::unique_ptr<gba_group, LeaveGroup>;

/// A call that failed: its -errno, its text, and the exit code of a program that ends with it.
struct Failure {
  int error = 0;
  std::string text;
  ExitCode code = kDeviceFailed;
};
template <typename T>
using Result = base::Result<T, Failure>;

/// The failure that a call of libgba has just returned.
inline Failure failed(int error, ExitCode code = kDeviceFailed) {
  return Failure{error, gba_error_text(), code};
}

/// `flags` of gba_open_options.
Result<DevicePointer> open_device(const std::string& path, std::uint32_t flags = 0);
Result<gba_device_info> info_of(gba_device* device);
/// Where its releases land, in words.
std::string flag_place(const gba_device_info& info);
Result<gba_device_counters> counters_of(gba_device* device);

/// Uapi rule 37.
struct GroupLimit {
  std::uint64_t most = 0;  // groups that a port may have; 0: the device has no limit
  std::uint64_t held = 0;  // those that count for this port
};
Result<GroupLimit> group_limit_of(gba_device* device, const gba_device_info& info);
Json to_json(const gba_device_counters& counters);

/// Prints it, on standard output if JSON was asked for, and returns the exit code.
int report(const Invocation& invocation, const Failure& failure);
/// A subcommand that opens the device with these `flags` of gba_open_options, and gives the exit code of `use`.
/// `invocation` outlives it.
std::function<int()> on_device(const Invocation& invocation, std::uint32_t flags,
                               std::function<int(gba_device* device, const gba_device_info& info)> use);

/// A group with one member, enabled and joined. Freed with the object, or by end().
class PrivateGroup {
 public:
  static Result<PrivateGroup> make(gba_device* device) {
    PrivateGroup group(device);
    if (const int error = gba_group_alloc(device, 1, 0, &group.handle_); error != 0) {
      return failed(error);
    }
    group.owned_ = true;
    gba_group* member = nullptr;
    if (const int error = gba_group_join(device, &group.handle_, 0, &member); error != 0) {
      return failed(error);
    }
    group.member_.reset(member);
    if (const int error = gba_group_enable(device, &group.handle_); error != 0) {
      return failed(error);
    }
    return group;
  }

  PrivateGroup(PrivateGroup&& other) noexcept
      : device_(other.device_),
        handle_(other.handle_),
        owned_(std::exchange(other.owned_, false)),
        member_(std::move(other.member_)) {}
  PrivateGroup(const PrivateGroup&) = delete;
  PrivateGroup& operator=(const PrivateGroup&) = delete;
  PrivateGroup& operator=(PrivateGroup&&) = delete;
  ~PrivateGroup() { (void)end(); }

  [[nodiscard]] gba_group* get() const { return member_.get(); }
  /// In good order, so that no member gets an error release. The first failure, as -errno.
  int end() {
    if (!std::exchange(owned_, false)) {
      return 0;
    }
    const int disabled = gba_group_disable(device_, &handle_);
    const int left = gba_group_leave(member_.release());
    const int freed = gba_group_free(device_, &handle_);
    return disabled != 0 ? disabled : left != 0 ? left : freed;
  }

 private:
  explicit PrivateGroup(gba_device* device) : device_(device) {}

  gba_device* device_;
  gba_group_handle handle_{};
  bool owned_ = false;
  GroupPointer member_;
};

}  // namespace tool
