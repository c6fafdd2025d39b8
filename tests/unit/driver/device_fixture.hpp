// SPDX-License-Identifier: Apache-2.0
// A Device on a FakeBackend, with a group to join.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "driver/device.hpp"
#include "driver/membership.hpp"
#include "tests/unit/driver/fake_backend.hpp"

namespace gba::test {

inline const std::vector<PciId> kGbaIds = expected_pci_ids(nullptr).value();

inline Result<std::unique_ptr<Device>> open_fake(const std::shared_ptr<FakeState>& state,
                                                 FlagPlace flags = FlagPlace::kHost) {
  return Device::open(std::make_unique<FakeBackend>(state), kGbaIds, flags);
}

class DeviceFixture : public testing::Test {
 protected:
  static constexpr std::uint32_t kGroup = 3;
  static constexpr std::uint32_t kMember = 7;

  void open() { device_ = open_fake(state_).value(); }
  Membership join() { return Membership::join(device_, handle_, kMember).value(); }

  std::shared_ptr<FakeState> state_ = std::make_shared<FakeState>();
  std::shared_ptr<Device> device_;
  gba_group_handle handle_{.group = kGroup, .key = 0xbeef, .member_count = 12, .reserved = 0, .sequence = 0};
};

}  // namespace gba::test
