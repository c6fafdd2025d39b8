// SPDX-License-Identifier: Apache-2.0
// QEMU passes the device to a guest with an unmodified kernel, and the guest can use it.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/process.hpp"
#include "tests/support/soak.hpp"
#include "tests/support/text.hpp"
#include "tests/vm/console.hpp"
#include "tests/vm/guest_run.hpp"
#include "tests/vm/kernels.hpp"
#include "uapi/gba_device.h"
#include "uapi/vfio_user.h"

namespace {

/// One boot of each kernel serves all tests.
const vm::GuestRun& guest_run(const std::string& kernel) {
  static std::map<std::string, vm::GuestRun> runs;
  const auto found = runs.find(kernel);
  return found != runs.end() ? found->second : runs.emplace(kernel, vm::run_guest(kernel)).first->second;
}

using KernelAndCheck = std::tuple<std::string, const char*>;
class GuestCheck : public testing::TestWithParam<KernelAndCheck> {};

TEST_P(GuestCheck, Passes) {
  const auto& [kernel, check] = GetParam();
  const auto& console = guest_run(kernel).console;
  const auto failure = console.find(vm::kFail + std::string(check) + ":");
  ASSERT_EQ(failure, std::string::npos) << console.substr(failure, console.find('\r', failure) - failure);
  EXPECT_NE(console.find(vm::kPass + std::string(check) + "\r"), std::string::npos)
      << "the guest did not get to this check";
}

INSTANTIATE_TEST_SUITE_P(All, GuestCheck,
                         testing::Combine(testing::ValuesIn(vm::kernels()), testing::ValuesIn(vm::kChecks)),
                         [](const auto& both) {
                           return vm::test_name(std::get<0>(both.param)) + "_" + std::get<1>(both.param);
                         });

class Guest : public testing::TestWithParam<std::string> {
 protected:
  const vm::GuestRun& run() { return guest_run(GetParam()); }
};

TEST_P(Guest, MakesAllChecksAndSwitchesOff) {
  const auto& console = run().console;
  const auto passed = test_support::all_matches(console, vm::kPass);
  EXPECT_TRUE(run().switched_off && passed.size() == std::size(vm::kChecks)) << console << run().qemu << run().host;
}

TEST_P(Guest, OpensTheFunctionByTheBackendOfItsKernel) {
  const auto& console = run().console;
  EXPECT_NE(console.find(vm::kBackend + vm::backend() + "\r"), std::string::npos) << console;
}

TEST_P(Guest, SynchronisesWithTheHost) {
  EXPECT_EQ(run().shared_rounds, vm::kRounds);
}

TEST_P(Guest, LeavesItsGroupsWhenItResetsTheFunction) {
  const auto word = run().word_after_reset;
  EXPECT_EQ(GBA_FIELD_GET(GBA_FLAG_ERROR, word), 1U);
  EXPECT_EQ(GBA_FIELD_GET(GBA_FLAG_CODE, word), unsigned{GBA_ERROR_LEAVE});
  EXPECT_EQ(GBA_FIELD_GET(GBA_FLAG_SEQUENCE, word), 1U);
}

TEST_P(Guest, SynchronisesTwoProcessesWithTheHost) {
  EXPECT_EQ(run().three_member_rounds, vm::kRounds);
}

// Nothing resets the function here, and QEMU stays connected: libgba must leave the groups.
TEST_P(Guest, LeavesItsGroupsWhenAFunctionIsUnplugged) {
  const auto word = run().word_after_unplug;
  EXPECT_EQ(GBA_FIELD_GET(GBA_FLAG_ERROR, word), 1U);
  EXPECT_EQ(GBA_FIELD_GET(GBA_FLAG_CODE, word), unsigned{GBA_ERROR_LEAVE});
  EXPECT_EQ(GBA_FIELD_GET(GBA_FLAG_SEQUENCE, word), 1U);
}

// QEMU unmaps memory that it never mapped when the guest's IOMMU changes: only that may be refused.
TEST_P(Guest, CausesNoRequestsThatAreRefused) {
  const auto answered =
      test_support::all_matches(run().received_messages, "cmd (0x[0-9a-f]+) size 0x[0-9a-f]+ flags (0x[0-9a-f]+)");
  for (const auto& message : answered) {
    const auto command = std::stoul(message[1], nullptr, 16);
    const bool refused = (std::stoul(message[2], nullptr, 16) & VFIO_USER_ERROR) != 0;
    EXPECT_FALSE(refused && command != VFIO_USER_DMA_UNMAP) << message[0];
  }
  EXPECT_GT(answered.size(), 100U);
}

TEST_P(Guest, LeavesNoProcessBehind) {
  EXPECT_EQ(run().processes_left, 0U);
}

INSTANTIATE_TEST_SUITE_P(All, Guest, testing::ValuesIn(vm::kernels()),
                         [](const auto& kernel) { return vm::test_name(kernel.param); });

}  // namespace
