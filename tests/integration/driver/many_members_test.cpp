// SPDX-License-Identifier: Apache-2.0
// As many processes as the switch has ports, one group, one device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/integration/driver/fixture.hpp"
#include "tests/support/soak.hpp"

namespace driver_test {
namespace {

using testing::HasSubstr;

class ManyMembers : public FakeDevice {
 protected:
  /// With nothing lost: no arrival refused, no group failed.
  void expect_barriers(int members, int barriers, std::uint64_t releases_of_device, double limit_in_seconds) {
    const auto outcome = test_support::run(
        {test_support::test_program("many_members"), path(), std::to_string(members), std::to_string(barriers)}, {},
        Seconds{limit_in_seconds});
    std::cout << outcome.output;
    ASSERT_TRUE(outcome.exit.clean()) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("releases " + std::to_string(releases_of_device) + " "));
    EXPECT_THAT(outcome.output, HasSubstr(" rejected 0 errors 0 "));
  }
};

TEST_F(ManyMembers, AsManyAsTheSwitchHasPorts) {
  const int barriers = test_support::repeats(5, 1000);
  expect_barriers(708, barriers, static_cast<std::uint64_t>(barriers), test_support::repeats(250, 3600));
  // All ports are free again, and so are the groups.
  expect_barriers(708, 1, static_cast<std::uint64_t>(barriers) + 1, 250);
  const auto device = open();
  for (unsigned group = 0; group < 32; ++group) {
    EXPECT_EQ(alloc(device.get(), 1).group, group);
  }
}

}  // namespace
}  // namespace driver_test
