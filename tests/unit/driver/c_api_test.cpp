// SPDX-License-Identifier: Apache-2.0
// What the C ABI adds: checked pointers, -errno, texts by thread.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "gba/gba.h"
#include "gba/version.h"
#include "tests/support/process.hpp"

namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(CApi, VersionIsTheHeaders) {
  EXPECT_STREQ(gba_version(), GBA_LIBRARY_VERSION);
  EXPECT_THAT(gba_version(), StartsWith(std::to_string(GBA_LIBRARY_VERSION_MAJOR) + "."));
}

TEST(CApi, NullIsInvalidAndNamed) {
  gba_device_info info;
  gba_device_counters counters;
  gba_group_handle handle{};
  gba_group* group = nullptr;
  std::uint64_t mask[GBA_GROUP_MASK_WORDS];
  EXPECT_EQ(gba_open("/x", nullptr), -EINVAL);
  EXPECT_STREQ(gba_error_text(), "gba_open: an argument is NULL");
  EXPECT_EQ(gba_device_get_info(nullptr, &info), -EINVAL);
  EXPECT_EQ(gba_device_get_counters(nullptr, &counters), -EINVAL);
  EXPECT_EQ(gba_group_alloc(nullptr, 1, 0, &handle), -EINVAL);
  EXPECT_EQ(gba_group_enable(nullptr, &handle), -EINVAL);
  EXPECT_EQ(gba_group_disable(nullptr, &handle), -EINVAL);
  EXPECT_EQ(gba_group_free(nullptr, &handle), -EINVAL);
  EXPECT_EQ(gba_group_join(nullptr, &handle, 0, &group), -EINVAL);
  EXPECT_EQ(gba_group_test(nullptr, 1), -EINVAL);
  EXPECT_EQ(gba_group_sleep(nullptr, 1, 1), -EINVAL);
  EXPECT_EQ(gba_group_wait(nullptr, 1, 1), -EINVAL);
  gba_group_status status{};
  EXPECT_EQ(gba_group_get_status(nullptr, 0, &status), -EINVAL);
  EXPECT_EQ(gba_device_reset(nullptr), -EINVAL);
  EXPECT_EQ(gba_group_missing(nullptr, mask), -EINVAL);
  EXPECT_STREQ(gba_error_text(), "gba_group_missing: an argument is NULL");
  EXPECT_EQ(gba_group_leave(nullptr), 0);
  gba_close(nullptr);
  gba_group_arrive(nullptr, 1);
}

TEST(CApi, FailedOpenSaysWhyAndGivesNothing) {
  const test_support::TempDir dir;
  auto* device = reinterpret_cast<gba_device*>(1);
  EXPECT_EQ(gba_open(dir.file("none").c_str(), &device), -ENODEV);
  EXPECT_EQ(device, nullptr);
  EXPECT_THAT(gba_error_text(), HasSubstr("gba: cannot open " + dir.file("none") + ": no such file"));
}

TEST(CApi, TextIsTheCallingThreads) {
  EXPECT_EQ(gba_open(nullptr, nullptr), -EINVAL);
  std::thread([] { EXPECT_STREQ(gba_error_text(), ""); }).join();
  EXPECT_STRNE(gba_error_text(), "");
}

TEST(CApi, LongTextsAreCutNotOverrun) {
  gba_device* device = nullptr;
  const std::string path = "/" + std::string(4000, 'x');
  EXPECT_LT(gba_open(path.c_str(), &device), 0);
  EXPECT_EQ(std::string(gba_error_text()).size(), 1023U);
}

}  // namespace
