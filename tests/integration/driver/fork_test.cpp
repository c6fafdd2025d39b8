// SPDX-License-Identifier: Apache-2.0
// A process that forks while it is a member of a barrier.
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include "gba/barrier.h"
#include "gba/gba.h"
#include "tests/integration/driver/fixture.hpp"

namespace driver_test {
namespace {

class ForkTest : public DeviceTest {
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

/// The exit code of a child that runs `body`.
template <typename Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_F(ForkTest, AChildCannotRingItsParentsDoorbells) {
  ASSERT_TRUE(barrier(1));
  const auto before = counters();
  EXPECT_EQ(in_child([&] {
              gba_group_arrive(group_.get(), 2);
              gba_group_arrive(group_.get(), 99);  // would put the group in error
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
  for (std::uint64_t k = 1; k <= 100; ++k) {
    ASSERT_TRUE(barrier(k)) << gba_error_text();
  }
}

TEST_F(ForkTest, AChildMayOpenTheDeviceForItself) {
  ASSERT_TRUE(barrier(1));
  EXPECT_EQ(in_child([&] {
              gba_device* own = nullptr;
              if (gba_open(path().c_str(), &own) != 0) {
                return 1;
              }
              gba_device_info info{};
              if (gba_device_get_info(own, &info) != 0 || info.port != 1) {
                return 2;
              }
              gba_group_handle handle{};
              gba_group* group = nullptr;
              if (gba_group_alloc(own, 1, 0, &handle) != 0 || gba_group_enable(own, &handle) != 0) {
                return 3;
              }
              if (gba_group_join(own, &handle, 0, &group) != 0) {
                return 4;
              }
              gba_group_arrive(group, 1);
              return gba_group_wait(group, 1, 60'000'000'000) == 0 ? 0 : 5;
            }),
            0);
  EXPECT_TRUE(barrier(2));
}

/// Lets one process wait for another: a byte in a pipe.
class Signpost {
 public:
  Signpost() { EXPECT_EQ(::pipe(static_cast<int*>(ends_)), 0); }
  Signpost(const Signpost&) = delete;
  Signpost& operator=(const Signpost&) = delete;
  ~Signpost() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  void raise() const { EXPECT_EQ(::write(ends_[1], "", 1), 1); }
  void wait() const {
    char byte = 0;
    EXPECT_EQ(::read(ends_[0], &byte, 1), 1);
  }

 private:
  int ends_[2] = {-1, -1};
};

TEST_F(ForkTest, AChildIsNotReleasedWithItsParent) {
  ASSERT_TRUE(barrier(1));
  const Signpost released;
  const pid_t child = ::fork();
  if (child == 0) {
    released.wait();
    ::_exit(gba_group_test(group_.get(), 2) == -ECHILD ? 0 : 1);
  }
  ASSERT_TRUE(barrier(2));
  released.raise();
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(ForkTest, AChildDoesNotKeepTheMembershipsOfAParentThatDies) {
  const gba_group_handle pair = alloc(device_.get(), 2);
  const GroupPointer first = join(device_.get(), pair, 0);
  const Signpost joined;
  const Signpost done;
  const pid_t member = ::fork();
  if (member == 0) {
    const DevicePointer own = open();
    const GroupPointer second = join(own.get(), pair, 1);
    if (::fork() == 0) {
      joined.raise();
      done.wait();  // a worker that outlives its parent
      ::_exit(0);
    }
    for (;;) {
      ::pause();
    }
  }
  joined.wait();
  ASSERT_EQ(gba_group_enable(device_.get(), &pair), 0) << gba_error_text();
  gba_group_arrive(first.get(), 1);
  ::kill(member, SIGKILL);
  ASSERT_EQ(::waitpid(member, nullptr, 0), member);
  EXPECT_EQ(gba_group_wait(first.get(), 1, 20'000'000'000), -EPIPE) << gba_error_text();
  done.raise();
}

/// The exit code of a child that is forked while another thread is inside `busy` and runs `body`.
template <typename Busy, typename Body>
int in_child_beside(Busy busy, Body body) {
  std::thread other(busy);
  std::this_thread::sleep_for(std::chrono::milliseconds{100});  // `busy` takes at least 400 ms
  const int status = in_child([&] {
    ::alarm(30);
    return body();
  });
  other.join();
  return status;
}

TEST_F(ForkTest, AChildMayOpenADeviceAlthoughAnotherThreadWasOpeningOne) {
  const std::string name = dir().file("silent.sock");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(static_cast<char*>(address.sun_path), sizeof(address.sun_path) - 1);
  const int silent = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(silent, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(silent, 4), 0);
  EXPECT_EQ(in_child_beside(
                [&] {
                  gba_device* none = nullptr;
                  EXPECT_NE(gba_open(name.c_str(), &none), 0);
                },
                [&] {
                  gba_device* own = nullptr;
                  return gba_open(path().c_str(), &own) == 0 ? 0 : 1;
                }),
            0);
  ::close(silent);
}

TEST_F(ForkTest, AChildIsNotBlockedByACallOfAnotherThread) {
  process().signal(SIGSTOP);
  EXPECT_EQ(in_child_beside(
                [&] {
                  gba_group_handle none{};
                  EXPECT_EQ(gba_group_alloc(device_.get(), 1, 0, &none), -EHOSTDOWN);
                },
                [&] {
                  gba_group_handle none{};
                  const int alloc = gba_group_alloc(device_.get(), 1, 0, &none);
                  gba_group_leave(group_.release());
                  gba_close(device_.release());
                  return alloc == -ECHILD ? 0 : 1;
                }),
            0);
  process().signal(SIGCONT);
}

TEST_F(ForkTest, AChildMayCloseAPortWhileAThreadLooksForItsDevice) {
  gba_barrier_port* port = nullptr;
  ASSERT_EQ(gba_barrier_port_open(path().c_str(), &port), 0) << gba_error_text();
  kill_device();
  gba_barrier_port_mark_suspect(port);
  gba_barrier_port_reopen(port);  // there is a thread from now on, until there is a device
  gba_device_info info{};
  EXPECT_EQ(in_child([&] {
              ::alarm(30);
              gba_barrier_port_mark_suspect(port);
              gba_barrier_port_reopen(port);
              if (gba_barrier_port_await(port, GBA_WAIT_FOREVER) != -ENODEV) {
                return 1;
              }
              if (gba_barrier_port_get_info(port, &info) != -ENODEV) {
                return 2;
              }
              gba_barrier_port_close(port);
              return 0;
            }),
            0);
  start();
  EXPECT_EQ(gba_barrier_port_await(port, 60'000'000'000), 0) << gba_error_text();
  EXPECT_EQ(gba_barrier_port_get_info(port, &info), 0) << gba_error_text();
  gba_barrier_port_close(port);
}

TEST_F(ForkTest, AChildMayDestroyABarrierAndCloseItsPort) {
  std::array<std::uint64_t, 2> words{};
  gba_barrier_port* port = nullptr;
  ASSERT_EQ(gba_barrier_port_open(path().c_str(), &port), 0) << gba_error_text();
  gba_barrier_config config{};
  config.size = sizeof config;
  config.members = 1;
  config.word = words.data();
  config.words = words.data();
  config.stride = sizeof words;
  config.port = port;
  gba_barrier* alone = nullptr;
  ASSERT_EQ(gba_barrier_create(&config, &alone), 0) << gba_error_text();
  gba_group_handle handle{};
  ASSERT_EQ(gba_barrier_offer(alone, 0, &handle), 0) << gba_error_text();
  ASSERT_EQ(gba_barrier_join(alone, &handle), 0) << gba_error_text();
  gba_barrier_begin(alone, 0);
  EXPECT_EQ(in_child([&] {
              ::alarm(30);
              gba_barrier_destroy(alone);
              gba_barrier_port_close(port);
              return 0;
            }),
            0);
  for (std::uint64_t k = 1; k <= 100; ++k) {
    gba_barrier_arrive(alone, k);
    const gba_barrier_waiting waiting{};
    ASSERT_EQ(gba_barrier_wait(alone, &waiting, 60'000'000'000), GBA_BARRIER_RELEASED) << gba_error_text();
  }
  gba_barrier_destroy(alone);
  gba_barrier_port_close(port);
}

}  // namespace
}  // namespace driver_test
