// SPDX-License-Identifier: Apache-2.0
// GoogleTest calls a run in which tests were skipped a success. ctest is to hear that not all could be tested here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  constexpr int kSkipped = 77;
  const int failed = RUN_ALL_TESTS();
  const bool skipped = testing::UnitTest::GetInstance()->skipped_test_count() > 0;
  return failed == 0 && skipped ? kSkipped : failed;
}
