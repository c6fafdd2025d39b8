// SPDX-License-Identifier: Apache-2.0
// Faults in the syntax of the command line.
#include "fake_device/injection.hpp"

#include <gmock/gmock.h>

namespace {

using fake_device::check;
using fake_device::Dimensions;
using fake_device::Injection;
using fake_device::parse_injection;
using ::testing::HasSubstr;

constexpr Dimensions kDevice{.groups = 32, .members = 708, .ports = 8};

TEST(InjectionText, NamesTheFaultItsTargetAndItsCount) {
  const auto parsed = parse_injection("drop-release:group=3,member=7,count=2,after=5,at=1.5ms");
  ASSERT_TRUE(parsed) << parsed.error().text;
  EXPECT_EQ(parsed->injection.kind, unsigned{GBA_INJECT_DROP_RELEASE});
  EXPECT_EQ(parsed->injection.group, 3U);
  EXPECT_EQ(parsed->injection.member, 7U);
  EXPECT_FALSE(parsed->injection.port);
  EXPECT_EQ(parsed->injection.count, 2U);
  EXPECT_EQ(parsed->injection.after, 5U);
  EXPECT_EQ(parsed->at, 1'500'000U);
}

TEST(InjectionText, HasDefaultsForOmittedParts) {
  const auto parsed = parse_injection("dma-fault");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->injection.count, 1U);
  EXPECT_EQ(parsed->injection.after, 0U);
  EXPECT_FALSE(parsed->injection.group);
  EXPECT_EQ(parsed->at, 0U);
}

TEST(InjectionText, AcceptsNumbersAndTimesInAllForms) {
  EXPECT_EQ(parse_injection("start-sequence:value=0xfffffffe")->injection.value, 0xfffffffeU);
  EXPECT_EQ(parse_injection("forge-arrival:group=0,member=1,value=-2")->injection.value, UINT64_MAX - 1);
  EXPECT_EQ(parse_injection("drop-arrival:count=always")->injection.count, fake_device::kAlways);
  const auto latency = parse_injection("latency:time=2us,sigma=300ns");
  ASSERT_TRUE(latency);
  EXPECT_EQ(latency->injection.time, 2000U);
  EXPECT_EQ(latency->injection.spread, 300U);
  EXPECT_EQ(parse_injection("stall-group:group=1,time=3s")->injection.time, 3'000'000'000U);
}

struct Wrong {
  const char* text;
  const char* message;
};
class WrongText : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongText, IsRefusedWithTheReason) {
  const auto parsed = parse_injection(GetParam().text);
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().text, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Injections, WrongText,
    ::testing::Values(Wrong{"", "no fault \"\""}, Wrong{"drop", "no fault \"drop\"; there are"},
                      Wrong{"drop-release:group", "not \"group\""}, Wrong{"drop-release:group=", "invalid value"},
                      Wrong{"drop-release:group=x", "invalid value"}, Wrong{"drop-release:group=1x", "invalid value"},
                      Wrong{"drop-release:group=99999999999999999999", "invalid value"},
                      Wrong{"drop-release:time=1us", "not \"time=1us\""}, Wrong{"drop-release,group=1", "no fault"},
                      Wrong{"latency", "needs time"}, Wrong{"latency:time=1", "has no unit: write time=1us"},
                      Wrong{"latency:time=-1us", "invalid value"}, Wrong{"latency:time=nanus", "invalid value"},
                      Wrong{"link-down", "needs port"}, Wrong{"stall-group", "needs group"},
                      Wrong{"forge-arrival:group=1", "needs member, value"}, Wrong{"slow-command", "needs time"},
                      Wrong{"slow-command:time=1us,group=1", "not \"group=1\""}));

TEST(InjectionCheck, ChecksTheNumbersAgainstTheDevice) {
  const auto message = [](const Injection& injection) {
    const auto checked = check(injection, kDevice);
    return checked ? "" : checked.error().text;
  };
  EXPECT_EQ(message({.kind = GBA_INJECT_DROP_RELEASE, .group = 31, .member = 707, .port = 8}), "");
  EXPECT_THAT(message({.kind = GBA_INJECT_DROP_RELEASE, .group = 32}), HasSubstr("the last one is 31"));
  EXPECT_THAT(message({.kind = GBA_INJECT_DROP_RELEASE, .member = 708}), HasSubstr("member is 708"));
  EXPECT_THAT(message({.kind = GBA_INJECT_LINK_DOWN, .port = 9}), HasSubstr("port is 9"));
  EXPECT_THAT(message({.kind = GBA_INJECT_LINK_DOWN}), HasSubstr("needs port"));
  EXPECT_EQ(message({.kind = GBA_INJECT_DROP_INTERRUPT, .group = 32}), "") << "the error vector";
  EXPECT_THAT(message({.kind = GBA_INJECT_START_SEQUENCE, .value = std::uint64_t{1} << 56}), HasSubstr("56 bits"));
  EXPECT_THAT(message({.kind = 0}), HasSubstr("no fault 0"));
  EXPECT_THAT(message({.kind = GBA_INJECT_STORM, .group = 3, .port = 1, .time = 1}), HasSubstr("no fault 17"));
  EXPECT_EQ(message({.kind = GBA_INJECT_SLOW_COMMAND, .port = 1, .time = 1}), "");
  EXPECT_THAT(message({.kind = GBA_INJECT_END}), HasSubstr("no fault"));
}

TEST(InjectionCheck, DescribesTheFaultForTheLog) {
  EXPECT_EQ(fake_device::describe({.kind = GBA_INJECT_DROP_RELEASE, .group = 3, .member = 7}),
            "drop-release group 3 member 7");
}

}  // namespace
