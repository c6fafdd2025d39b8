// SPDX-License-Identifier: Apache-2.0
#include "base/number.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace {

TEST(Number, IsTakenFromTheBeginningOfAText) {
  std::string_view text = "12/-3x";
  EXPECT_EQ(base::take_number<int>(text), 12);
  EXPECT_FALSE(base::take(text, ':'));
  EXPECT_TRUE(base::take(text, '/'));
  EXPECT_EQ(base::take_number<int>(text), -3);
  EXPECT_EQ(text, "x");
  EXPECT_EQ(base::take_number<int>(text), std::nullopt);
  EXPECT_EQ(text, "x");
  text = "1.5us";
  EXPECT_EQ(base::take_number<double>(text), 1.5);
  EXPECT_EQ(text, "us");
  text = "fg";
  EXPECT_EQ(base::take_number<int>(text, 16), 15);
  EXPECT_EQ(text, "g");
  text = "";
  EXPECT_FALSE(base::take(text, 'x'));
  EXPECT_EQ(base::take_number<int>(text), std::nullopt);
}

TEST(Number, IsAllOfATextOrNothing) {
  EXPECT_EQ(base::number<std::uint16_t>("65535"), 65535);
  EXPECT_EQ(base::hexadecimal_number<std::uint16_t>("ffff"), 65535);
  for (const auto* const none : {"", " 1", "1 ", "+1", "0x1", "65536", "-1"}) {
    EXPECT_EQ(base::number<std::uint16_t>(none), std::nullopt) << none;
  }
  EXPECT_EQ(base::hexadecimal_number<std::uint16_t>("10000"), std::nullopt);
}

}  // namespace
