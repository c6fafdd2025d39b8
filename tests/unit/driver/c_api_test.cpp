// SPDX-License-Identifier: Apache-2.0
// The additions of the C ABI: checked pointers, negative errno, one error text per thread.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "driver/group.hpp"
#include "gba/gba.h"
#include "gba/version.h"
#include "tests/support/process.hpp"
#include "tests/unit/driver/device_fixture.hpp"

/// The same definition as in driver/c_api.cpp.
struct gba_group : gba::Group {
  using gba::Group::Group;
};

namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(CApi, VersionMatchesTheHeader) {
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

TEST(CApi, FailedOpenSaysWhyAndReturnsNoDevice) {
  const test_support::TempDir dir;
  auto* device = reinterpret_cast<gba_device*>(1);
  EXPECT_EQ(gba_open(dir.file("none").c_str(), &device), -ENODEV);
  EXPECT_EQ(device, nullptr);
  EXPECT_THAT(gba_error_text(), HasSubstr("gba: cannot open " + dir.file("none") + ": no such file"));
}

TEST(CApi, TextBelongsToTheCallingThread) {
  EXPECT_EQ(gba_open(nullptr, nullptr), -EINVAL);
  std::thread([] { EXPECT_STREQ(gba_error_text(), ""); }).join();
  EXPECT_STRNE(gba_error_text(), "");
}

TEST(CApi, LongTextsAreTruncated) {
  gba_device* device = nullptr;
  const std::string path = "/" + std::string(4000, 'x');
  EXPECT_LT(gba_open(path.c_str(), &device), 0);
  EXPECT_EQ(std::string(gba_error_text()).size(), 1023U);
}

class CApiGroup : public gba::test::DeviceFixture {};

TEST_F(CApiGroup, ThrowsNothingWhenMemoryRunsOut) {
  open();
  gba_group group(join());
  state_->control[GBA_REG_CAPS] |= GBA_CAPS_WAKEUP;
  state_->set_wakeup(GBA_WAKEUP_SLEEPING);
  state_->out_of_memory = true;
  EXPECT_NO_THROW(gba_group_arrive(&group, 1)) << "the kick is a message";
  // One test in 1024 checks for a loss. Only after a quarter of a second does it ask the device, a call that throws
  // here.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{60};
  int result = -EAGAIN;
  EXPECT_NO_THROW(
      while (result == -EAGAIN && std::chrono::steady_clock::now() < end) { result = gba_group_test(&group, 1); });
  EXPECT_EQ(result, -ENOMEM);
  EXPECT_STREQ(gba_error_text(), "gba: out of memory");
  EXPECT_NO_THROW(result = gba_group_wait(&group, 2, 2'000'000'000));
  EXPECT_EQ(result, -ENOMEM);
  std::this_thread::sleep_for(std::chrono::milliseconds{1100});
  EXPECT_NO_THROW(result = gba_group_sleep(&group, 2, 1));
  state_->out_of_memory = false;
}

}  // namespace
