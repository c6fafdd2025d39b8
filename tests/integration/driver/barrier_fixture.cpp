// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/driver/barrier_fixture.hpp"

namespace driver_test {

void BarrierTest::start_members(std::uint32_t count, const Run& run, std::uint64_t sequence) {
  owner_ = open();
  handle_ = alloc(owner_.get(), count, sequence);
  ASSERT_EQ(gba_group_enable(owner_.get(), &handle_), 0) << gba_error_text();
  for (std::uint32_t m = 0; m < count; ++m) {
    add_member(handle_, m, run);
  }
}

void BarrierTest::expect_all_done() {
  for (std::size_t m = 0; m < member_count(); ++m) {
    EXPECT_TRUE(member(m).wait_for_output("done", kLimit)) << m << ": " << member(m).output();
  }
}

void BarrierTest::expect_failures(std::size_t count, const std::string& text) {
  for (std::size_t m = 0; m < count; ++m) {
    const auto exit = member(m).wait(kLimit);
    ASSERT_TRUE(exit) << m << ": " << member(m).output();
    EXPECT_EQ(exit->code, 3) << m << ": " << member(m).output();
    EXPECT_THAT(member(m).output(), testing::HasSubstr(text)) << m;
  }
}

}  // namespace driver_test
