// SPDX-License-Identifier: Apache-2.0
// A test that passes, one that fails and one that is skipped.
#include <gtest/gtest.h>

TEST(OfEachKind, Passes) {
  SUCCEED();
}

TEST(OfEachKind, Fails) {
  FAIL();
}

TEST(OfEachKind, IsSkipped) {
  GTEST_SKIP() << "on purpose";
}
