// SPDX-License-Identifier: Apache-2.0
// The names of documents about components for Open MPI (scoll_gba.h, coll_switch_barrier.h): their numbers are the
// device's, and barriers made by them work, with a device that is lost, too.
#include <csignal>
#include <cstddef>

#include "gba/coll_switch_barrier.h"
#include "tests/integration/driver/fixture.hpp"
#include "tests/support/process.hpp"
#include "uapi/gba_device.h"
#include "uapi/gba_regs.h"
#include "uapi/gba_switch_regs.h"

namespace driver_test {
namespace {

static_assert(GBA_REG_GROUP_ID == GBA_GROUP_ID && GBA_REG_MEMBER_COUNT == GBA_GROUP_MEMBER_COUNT);
static_assert(GBA_REG_ARRIVAL_COUNT == GBA_GROUP_ARRIVAL_COUNT && GBA_REG_MEMBER_MASK_BASE == GBA_GROUP_MEMBER_MASK);
static_assert(GBA_REG_RELEASE_ADDR_BASE == GBA_GROUP_RELEASE_ADDR && GBA_REG_CONTROL == GBA_GROUP_CONTROL);
static_assert(GBA_REG_STATUS == GBA_GROUP_STATUS && GBA_GROUP_REG_BASE(31) == GBA_GROUP_BASE(31));
static_assert(GBA_CTRL_ENABLE == GBA_CONTROL_ENABLE && GBA_CTRL_RESET == GBA_CONTROL_RESET);
static_assert(GBA_CTRL_ARM == GBA_CONTROL_ARM && GBA_GROUP_MASK_WORDS == GBA_MASK_WORDS);
static_assert(GBA_NAMES_MOST_GROUPS >= GBA_MAX_GROUPS && GBA_NAMES_MOST_GROUPS >= GBA_SWITCH_MAX_GROUPS);

static_assert(SWITCH_BARRIER_MAX_GROUPS == GBA_SWITCH_MAX_GROUPS);
static_assert(SWITCH_BARRIER_MAX_MEMBERS == GBA_SWITCH_MAX_MEMBERS);
static_assert(SWITCH_BARRIER_REG_NETWORK_ADDR == GBA_SWITCH_NETWORK_ADDR);
static_assert(SWITCH_BARRIER_REG_GROUP_ID == GBA_SWITCH_GROUP_ID);
static_assert(SWITCH_BARRIER_REG_MEMBER_MASK_LO == GBA_SWITCH_MEMBER_MASK);
static_assert(SWITCH_BARRIER_REG_MEMBER_MASK_HI == GBA_SWITCH_MEMBER_MASK + 8);
static_assert(SWITCH_BARRIER_REG_MEMBER_COUNT == GBA_SWITCH_MEMBER_COUNT);
static_assert(SWITCH_BARRIER_REG_CONTROL == GBA_SWITCH_CONTROL && SWITCH_BARRIER_REG_STATUS == GBA_SWITCH_STATUS);
static_assert(SWITCH_BARRIER_REG_ARRIVED_MASK_LO == GBA_SWITCH_ARRIVED_MASK);
static_assert(SWITCH_BARRIER_REG_ARRIVED_MASK_HI == GBA_SWITCH_ARRIVED_MASK + 8);
static_assert(SWITCH_BARRIER_REG_LOCAL_MEMBER_ID == GBA_SWITCH_LOCAL_MEMBER_ID);
static_assert(SWITCH_BARRIER_REG_RELEASE_ADDR == GBA_SWITCH_RELEASE_ADDR);
static_assert(SWITCH_BARRIER_REG_ARRIVAL_ADDR == GBA_SWITCH_ARRIVAL_ADDR);

// As in the documents: 40 bytes without gaps, but for three reserved ones.
using Message = switch_barrier_remote_store_msg_t;
static_assert(sizeof(Message) == 40 && sizeof Message::msg_type == 1 && offsetof(Message, msg_type) == 0);
static_assert(offsetof(Message, reserved) == 1 && offsetof(Message, group_id) == 4);
static_assert(offsetof(Message, member_id) == 8 && offsetof(Message, sequence) == 12);
static_assert(offsetof(Message, timestamp) == 16 && offsetof(Message, target_addr) == 24);
static_assert(offsetof(Message, store_value) == 32);
static_assert(SWITCH_BARRIER_MSG_ARRIVE == 1 && SWITCH_BARRIER_MSG_RELEASE == 2);

class DocumentNames : public DeviceTest, public testing::WithParamInterface<const char*> {
 protected:
  DocumentNames() : DeviceTest({"--profile", GetParam()}) {}

  /// Three members make 50 barriers; with `when_lost` the device dies in the last one.
  [[nodiscard]] std::vector<std::string> members(const std::string& when_lost = "") const {
    std::vector<std::string> line{test_support::test_program("document_members"), GetParam(), "vfio-user:" + path(),
                                  "3", "50"};
    if (!when_lost.empty()) {
      line.push_back(when_lost);
    }
    return line;
  }
};

TEST_P(DocumentNames, MakeBarriers) {
  const auto outcome = test_support::run(members(), {}, kLimit);
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
}

TEST_P(DocumentNames, ReturnTheErrorOfALostDevice) {
  Process job(members("returns"));
  ASSERT_TRUE(job.wait_for_output("holding", kLimit)) << job.output();
  kill_device();
  ASSERT_TRUE(job.wait(kLimit));
  for (const char* member : {"member 1", "member 2"}) {
    EXPECT_NE(job.output().find(member + (": error -" + std::to_string(ECONNABORTED))), std::string::npos)
        << job.output();
  }
}

TEST_P(DocumentNames, EndTheProcessIfTheErrorCannotBeReturned) {
  Process job(members("aborts"));
  ASSERT_TRUE(job.wait_for_output("holding", kLimit)) << job.output();
  kill_device();
  ASSERT_TRUE(job.wait(kLimit));
  EXPECT_NE(job.output().find("gba_poll_release: barrier "), std::string::npos) << job.output();
  EXPECT_NE(job.output().find("member 1: signal " + std::to_string(SIGABRT)), std::string::npos) << job.output();
}

INSTANTIATE_TEST_SUITE_P(Profiles, DocumentNames, testing::Values("gba", "switch"),
                         [](const testing::TestParamInfo<const char*>& test) { return std::string(test.param); });

}  // namespace
}  // namespace driver_test
