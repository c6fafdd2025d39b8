// SPDX-License-Identifier: Apache-2.0
#include "fake_device/profile.hpp"

#include "tests/unit/fake_device/model_fixture.hpp"

namespace {

using fake_device::Model;
using fake_device::Profile;
using fake_device_test::RecordingEffects;

class EachProfile : public ::testing::TestWithParam<const Profile*> {};

TEST_P(EachProfile, ReportsItsSizeInCaps) {
  const Profile& profile = *GetParam();
  RecordingEffects effects;
  Model model(profile.dimensions(3), profile.layout, effects);
  const auto caps = model.read(0, GBA_REG_CAPS, 8);
  EXPECT_EQ(GBA_FIELD_GET(GBA_CAPS_GROUPS, caps), profile.groups);
  EXPECT_EQ(GBA_FIELD_GET(GBA_CAPS_MEMBERS, caps), profile.members);
  EXPECT_EQ(model.dimensions().error_vector(), profile.groups) << "the error vector is the last";
  EXPECT_EQ(model.privileged_port(), 3U);
}

INSTANTIATE_TEST_SUITE_P(All, EachProfile,
                         ::testing::Values(&fake_device::gba_profile(), &fake_device::switch_profile()),
                         [](const auto& tested) { return std::string(tested.param->name); });

TEST(Profiles, HaveDifferentPciDeviceIds) {
  EXPECT_NE(fake_device::gba_profile().pci_device_id, fake_device::switch_profile().pci_device_id);
}

}  // namespace
