// SPDX-License-Identifier: Apache-2.0
// A process that forks while it is a member of a barrier.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "gba/gba.h"
#include "tests/integration/driver/fixture.hpp"

namespace driver_test {
namespace {

class ForkTest : public FakeDevice {
 protected:
  ForkTest() : device_(open()), handle_(alloc(device_.get(), 1)), group_(join(device_.get(), handle_, 0)) {
    EXPECT_EQ(gba_group_enable(device_.get(), &handle_), 0) << gba_error_text();
  }
  bool barrier(std::uint64_t sequence) {
    gba_group_arrive(group_.get(), sequence);
    return gba_group_wait(group_.get(), sequence, 60'000'000'000) == 0;
  }
  gba_device_counters counters() {
    gba_device_counters counters{};
    EXPECT_EQ(gba_device_get_counters(device_.get(), &counters), 0) << gba_error_text();
    return counters;
  }

  DevicePointer device_;
  gba_group_handle handle_;
  GroupPointer group_;
};

/// Exit code of a child that does this.
template <typename Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_F(ForkTest, AChildCannotRingItsParentsDoorbells) {
  ASSERT_TRUE(barrier(1));
  const auto before = counters();
  EXPECT_EQ(in_child([&] {
              gba_group_arrive(group_.get(), 2);
              gba_group_arrive(group_.get(), 99);  // would be the end of the group
              return gba_group_wait(group_.get(), 2, 60'000'000'000) == -ECHILD ? 0 : 1;
            }),
            0);
  EXPECT_EQ(counters().arrivals, before.arrivals);
  EXPECT_EQ(counters().rejected, before.rejected);
  EXPECT_TRUE(barrier(2)) << gba_error_text();
}

TEST_F(ForkTest, AChildThatEndsOrClosesTakesNothingFromItsParent) {
  EXPECT_EQ(in_child([&] {
              gba_group_leave(group_.release());
              gba_close(device_.release());
              return 0;
            }),
            0);
  for (std::uint64_t k = 1; k <= 100; ++k) ASSERT_TRUE(barrier(k)) << gba_error_text();
}

TEST_F(ForkTest, AChildMayOpenTheDeviceForItself) {
  ASSERT_TRUE(barrier(1));
  EXPECT_EQ(in_child([&] {
              gba_device* own = nullptr;
              if (gba_open(path().c_str(), &own) != 0) return 1;
              gba_device_info info{};
              if (gba_device_get_info(own, &info) != 0 || info.port != 1) return 2;
              gba_group_handle handle{};
              gba_group* group = nullptr;
              if (gba_group_alloc(own, 1, 0, &handle) != 0 || gba_group_enable(own, &handle) != 0) return 3;
              if (gba_group_join(own, &handle, 0, &group) != 0) return 4;
              gba_group_arrive(group, 1);
              return gba_group_wait(group, 1, 60'000'000'000) == 0 ? 0 : 5;
            }),
            0);
  EXPECT_TRUE(barrier(2));
}

}  // namespace
}  // namespace driver_test
