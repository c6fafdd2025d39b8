// SPDX-License-Identifier: Apache-2.0
// Sizes and counts as people read them.
#include "base/size_text.hpp"

#include <gtest/gtest.h>

namespace {

TEST(SizeText, HasTheLargestUnitThatIsExact) {
  EXPECT_EQ(base::size_text(std::size_t{3} << 30), "3 GiB");
  EXPECT_EQ(base::size_text(1536), "1536 bytes");
  EXPECT_EQ(base::size_text(1), "1 byte");
  EXPECT_EQ(base::rounded_size_text(1536), "1.5 KiB");
}

TEST(Count, IsSingularForOne) {
  EXPECT_EQ(base::count(1, "PE"), "1 PE");
  EXPECT_EQ(base::count(0U, "PE"), "0 PEs");
  EXPECT_EQ(base::count(std::size_t{12}, "member"), "12 members");
  EXPECT_EQ(base::count(1, "process"), "1 process");
  EXPECT_EQ(base::count(2, "process"), "2 processes");
}

}  // namespace
