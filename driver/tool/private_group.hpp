// SPDX-License-Identifier: Apache-2.0
// A barrier group of this process alone.
#pragma once

#include <utility>

#include "driver/tool/device.hpp"

namespace tool {

/// A group with one member, enabled and joined. Freed with the object, or by end().
class PrivateGroup {
 public:
  static Result<PrivateGroup> make(gba_device* device) {
    PrivateGroup group(device);
    if (const int error = gba_group_alloc(device, 1, 0, &group.handle_); error != 0) return failed(error);
    group.owned_ = true;
    gba_group* member = nullptr;
    if (const int error = gba_group_join(device, &group.handle_, 0, &member); error != 0) return failed(error);
    group.member_.reset(member);
    if (const int error = gba_group_enable(device, &group.handle_); error != 0) return failed(error);
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
  /// In good order, so that nobody gets an error release. The first failure, as -errno.
  int end() {
    if (!std::exchange(owned_, false)) return 0;
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
