// SPDX-License-Identifier: Apache-2.0
// A test that passes, one that fails and one that is skipped, as if each had a file of its own.
#include <gtest/gtest.h>

#line 1 "kinds/passing_test.cpp"
TEST(OfEachKind, Passes) {
  SUCCEED();
}

#line 1 "kinds/failing_test.cpp"
TEST(OfEachKind, Fails) {
  FAIL();
}

#line 1 "kinds/skipped_test.cpp"
TEST(OfEachKind, IsSkipped) {
  GTEST_SKIP() << "on purpose";
}
