// SPDX-License-Identifier: Apache-2.0
// One group with a process on every port of the switch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/integration/driver/fixture.hpp"
#include "tests/support/soak.hpp"

namespace driver_test {
namespace {

using testing::HasSubstr;

class ManyMembers : public DeviceTest {
 protected:
  ManyMembers() : DeviceTest({"--group-limit", "32"}) {}
  /// Expects that no arrival is refused and no group fails.
  void expect_barriers(int members, int barriers, std::uint64_t releases_of_device, double limit_in_seconds) {
    const auto outcome = test_support::run({test_support::test_program("driver_member"), "many", path(),
                                            std::to_string(members), std::to_string(barriers)},
                                           {}, Seconds{limit_in_seconds});
    std::cout << outcome.output;
    ASSERT_TRUE(outcome.exit.clean()) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("releases " + std::to_string(releases_of_device) + " "));
    EXPECT_THAT(outcome.output, HasSubstr(" rejected 0 errors 0 "));
  }
};

TEST_F(ManyMembers, RunBarriersOnEveryPortOfTheSwitch) {
  const int barriers = test_support::repeats(5, 1000);
  expect_barriers(708, barriers, static_cast<std::uint64_t>(barriers), test_support::repeats(250, 3600));
  // The first run has freed all ports and groups.
  expect_barriers(708, 1, static_cast<std::uint64_t>(barriers) + 1, 250);
  const auto device = open();
  for (unsigned group = 0; group < 32; ++group) {
    EXPECT_EQ(alloc(device.get(), 1).group, group);
  }
}

}  // namespace
}  // namespace driver_test
