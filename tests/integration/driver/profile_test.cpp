// SPDX-License-Identifier: Apache-2.0
// Both device profiles through the same calls, and the status of a group as any port reads it.
#include <algorithm>
#include <thread>

#include "gba/gba.h"
#include "tests/integration/driver/barrier_fixture.hpp"
#include "tests/support/soak.hpp"
#include "uapi/gba_regs.h"
#include "uapi/gba_switch_regs.h"

namespace driver_test {
namespace {

struct Kind {
  const char* profile;
  std::uint32_t groups;
  std::uint32_t members;
};

class ProfileTest : public BarrierTest, public testing::WithParamInterface<Kind> {
 protected:
  ProfileTest() : BarrierTest({"--profile", GetParam().profile, "--group-limit", std::to_string(GetParam().groups)}) {}
  gba_group_status status(std::uint32_t group) {
    gba_group_status status{};
    EXPECT_EQ(gba_group_get_status(owner_.get(), group, &status), 0) << gba_error_text();
    return status;
  }
};

TEST_P(ProfileTest, HasAsManyGroupsAndMembersAsItReports) {
  const auto device = open();
  gba_device_info info{};
  ASSERT_EQ(gba_device_get_info(device.get(), &info), 0);
  EXPECT_EQ(info.groups, GetParam().groups);
  EXPECT_EQ(info.members, GetParam().members);
  gba_group_handle handle{};
  EXPECT_EQ(gba_group_alloc(device.get(), GetParam().members + 1, 0, &handle), -EINVAL);
  for (std::uint32_t group = 0; group < GetParam().groups; ++group) {
    EXPECT_EQ(alloc(device.get(), GetParam().members).group, group);
  }
  EXPECT_EQ(gba_group_alloc(device.get(), 1, 0, &handle), -ENOSPC);
}

TEST_P(ProfileTest, RunsBarriersInItsLastGroup) {
  owner_ = open();
  while (alloc(owner_.get(), 1).group + 2 < GetParam().groups) {
  }
  start_members(3, {.rounds = static_cast<std::uint64_t>(test_support::repeats(500, 20000))}, 41);
  EXPECT_EQ(handle_.group, GetParam().groups - 1);
  expect_all_done();
}

TEST_P(ProfileTest, NamesTheMissingMembers) {
  start_members(2, {.rounds = 5, .wait_ms = 1000, .hold_at = 3});
  expect_failures(1, "member 1 did not arrive");
}

TEST_P(ProfileTest, ShowsAStuckRoundToAnyPort) {
  start_members(3, {.rounds = 5, .hold_at = 3});
  ASSERT_TRUE(member(2).wait_for_output("holding", kLimit));
  gba_group_status now{};
  for (int tries = 0; tries < 2000 && (now.sequence != 2 || now.arrival_count != 2); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    now = status(handle_.group);
  }
  EXPECT_EQ(now.group, handle_.group);
  EXPECT_EQ(now.member_count, 3U);
  EXPECT_EQ(now.enabled, 1U);
  EXPECT_EQ(now.status, GBA_STATUS_ACTIVE);
  EXPECT_EQ(now.sequence, 2U);
  EXPECT_EQ(now.members[0], 0b111U);
  EXPECT_EQ(now.arrived[0], 0b011U) << "the last member is missing";
  EXPECT_GT(now.round_age_ns, 0U);
  EXPECT_EQ(now.error_member, GBA_NO_MEMBER);
  std::vector<std::uint16_t> ports(now.ports, now.ports + 3);
  std::sort(ports.begin(), ports.end());
  EXPECT_THAT(ports, testing::ElementsAre(1, 2, 3)) << "the members' ports; the owner is port 0";
  EXPECT_EQ(now.ports[3], GBA_NO_PORT);
  member(0).signal(SIGKILL);
  for (int tries = 0; tries < 2000 && now.status != GBA_STATUS_ERROR; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    now = status(handle_.group);
  }
  EXPECT_EQ(now.error_code, unsigned{GBA_ERROR_LEAVE});
  EXPECT_EQ(now.error_member, 0U);
  EXPECT_EQ(now.ports[0], GBA_NO_PORT);
}

TEST_P(ProfileTest, RefusesTheStatusOfAnUnknownGroup) {
  owner_ = open();
  EXPECT_EQ(status(GetParam().groups - 1).member_count, 0U) << "not allocated";
  gba_group_status status{};
  EXPECT_EQ(gba_group_get_status(owner_.get(), GetParam().groups, &status), -EINVAL);
  EXPECT_THAT(gba_error_text(), testing::HasSubstr("no group " + std::to_string(GetParam().groups)));
}

INSTANTIATE_TEST_SUITE_P(Profiles, ProfileTest,
                         testing::Values(Kind{"gba", GBA_MAX_GROUPS, GBA_MAX_MEMBERS},
                                         Kind{"switch", GBA_SWITCH_MAX_GROUPS, GBA_SWITCH_MAX_MEMBERS}),
                         [](const auto& instance) { return std::string(instance.param.profile); });

}  // namespace
}  // namespace driver_test
