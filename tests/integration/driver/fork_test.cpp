// SPDX-License-Identifier: Apache-2.0
// A process that forks while it is a member of a barrier.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <iterator>
#include <map>
#include <set>
#include <string>
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

/// A barrier of one member, which uses the device.
class LoneBarrier {
  static constexpr std::size_t kBytes = 4096;

 public:
  explicit LoneBarrier(const std::string& path) {
    EXPECT_EQ(gba_barrier_port_open(path.c_str(), &port), 0) << gba_error_text();
    gba_barrier_config config{};
    config.size = sizeof config;
    config.members = 1;
    config.word = words.data();
    config.words = words.data();
    config.stride = sizeof words;
    config.port = port;
    EXPECT_EQ(gba_barrier_create(&config, &barrier), 0) << gba_error_text();
    EXPECT_EQ(gba_barrier_offer(barrier, 0, &handle), 0) << gba_error_text();
    EXPECT_EQ(gba_barrier_join(barrier, &handle), 0) << gba_error_text();
    gba_barrier_begin(barrier, 0);
  }
  LoneBarrier(const LoneBarrier&) = delete;
  LoneBarrier& operator=(const LoneBarrier&) = delete;
  ~LoneBarrier() {
    gba_barrier_destroy(barrier);
    gba_barrier_port_close(port);
    ::munmap(&words, kBytes);
  }
  int wait() {
    const gba_barrier_waiting waiting{};
    return gba_barrier_wait(barrier, &waiting, 60'000'000'000);
  }

  std::array<std::uint64_t, 2>& words = *static_cast<std::array<std::uint64_t, 2>*>(
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  gba_barrier_port* port = nullptr;
  gba_barrier* barrier = nullptr;
  gba_group_handle handle{};
};

TEST_F(ForkTest, AChildMayDestroyABarrierAndCloseItsPort) {
  LoneBarrier lone(path());
  EXPECT_EQ(in_child([&] {
              ::alarm(30);
              gba_barrier_destroy(lone.barrier);
              gba_barrier_port_close(lone.port);
              return 0;
            }),
            0);
  for (std::uint64_t k = 1; k <= 100; ++k) {
    gba_barrier_arrive(lone.barrier, k);
    ASSERT_EQ(lone.wait(), GBA_BARRIER_RELEASED) << gba_error_text();
  }
}

// ---- Every call on a handle that a child has inherited ----

/// In place of an errno: the call has no result.
constexpr int kNoResult = 1;
using Outcomes = std::map<std::string, int>;

/// Runs `calls` in a child.
template <typename Calls>
void expect_in_child(const Outcomes& expected, Calls calls) {
  std::array<int, 2> pipe{-1, -1};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const int code = in_child([&] {
    ::alarm(60);
    std::string wrong;
    const Outcomes got = calls();
    for (const auto& [name, outcome] : expected) {
      const auto found = got.find(name);
      const int result = found == got.end() ? INT_MAX : found->second;
      wrong += result == outcome ? "" : name + ": " + std::to_string(result) + "; ";
    }
    static_cast<void>(::write(pipe[1], wrong.data(), wrong.size()));
    return got.size() == expected.size() ? 0 : 1;
  });
  ::close(pipe[1]);
  std::array<char, 4096> wrong{};
  const auto size = ::read(pipe[0], wrong.data(), wrong.size());
  ::close(pipe[0]);
  EXPECT_EQ(std::string(wrong.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))), "");
  EXPECT_EQ(code, 0);
}

std::set<std::string> names_of(const Outcomes& outcomes, std::set<std::string> names) {
  std::transform(outcomes.begin(), outcomes.end(), std::inserter(names, names.end()),
                 [](const auto& one) { return one.first; });
  return names;
}

TEST_F(ForkTest, EachCallOfAChildOnADeviceOrAGroupFails) {
  const Outcomes expected = {
      {"gba_device_get_info", -ECHILD},  {"gba_device_get_counters", -ECHILD},  {"gba_device_check", -ECHILD},
      {"gba_group_get_status", -ECHILD}, {"gba_device_read_register", -ECHILD}, {"gba_device_write_register", -ECHILD},
      {"gba_device_reset", -ECHILD},     {"gba_group_alloc", -ECHILD},          {"gba_group_enable", -ECHILD},
      {"gba_group_disable", -ECHILD},    {"gba_group_free", -ECHILD},           {"gba_group_join", -ECHILD},
      {"gba_group_arrive", kNoResult},   {"gba_group_test", -ECHILD},           {"gba_group_sleep", -ECHILD},
      {"gba_group_wait", -ECHILD},       {"gba_group_missing", -ECHILD},        {"gba_close", kNoResult},
  };
  EXPECT_EQ(names_of(expected, {"gba_version", "gba_error_text", "gba_list", "gba_open", "gba_open_with",
                                "gba_group_leave"}),  // the first ones have no handle; 0 or -ECHILD
            functions_of("gba.h"));
  ASSERT_TRUE(barrier(1));
  const auto before = counters();
  expect_in_child(expected, [&] {
    Outcomes got;
    gba_device_info info{};
    gba_device_counters counted{};
    gba_group_status status{};
    gba_group_handle other{};
    gba_group* more = nullptr;
    std::uint64_t value = 0;
    std::array<std::uint64_t, GBA_GROUP_MASK_WORDS> mask{};
    got["gba_device_get_info"] = gba_device_get_info(device_.get(), &info);
    got["gba_device_get_counters"] = gba_device_get_counters(device_.get(), &counted);
    got["gba_device_check"] = gba_device_check(device_.get());
    got["gba_group_get_status"] = gba_group_get_status(device_.get(), 0, &status);
    got["gba_device_read_register"] = gba_device_read_register(device_.get(), 0, 4, &value);
    got["gba_device_write_register"] = gba_device_write_register(device_.get(), 0, 4, 0);
    got["gba_device_reset"] = gba_device_reset(device_.get());
    got["gba_group_alloc"] = gba_group_alloc(device_.get(), 1, 0, &other);
    got["gba_group_enable"] = gba_group_enable(device_.get(), &handle_);
    got["gba_group_disable"] = gba_group_disable(device_.get(), &handle_);
    got["gba_group_free"] = gba_group_free(device_.get(), &handle_);
    got["gba_group_join"] = gba_group_join(device_.get(), &handle_, 0, &more);
    gba_group_arrive(group_.get(), 2);
    got["gba_group_test"] = gba_group_test(group_.get(), 2);
    got["gba_group_sleep"] = gba_group_sleep(group_.get(), 2, 1000);
    got["gba_group_wait"] = gba_group_wait(group_.get(), 2, 60'000'000'000);
    got["gba_group_missing"] = gba_group_missing(group_.get(), mask.data());
    gba_group_leave(group_.release());
    gba_close(device_.release());
    got["gba_group_arrive"] = got["gba_close"] = kNoResult;
    return got;
  });
  EXPECT_EQ(counters().arrivals, before.arrivals);
  for (std::uint64_t k = 2; k <= 10; ++k) {
    ASSERT_TRUE(barrier(k)) << gba_error_text();
  }
}

TEST_F(ForkTest, EachCallOfAChildOnABarrierOrAPortFails) {
  const Outcomes expected = {
      {"gba_barrier_port_get_info", -ENODEV}, {"gba_barrier_port_mark_suspect", kNoResult},
      {"gba_barrier_port_reopen", kNoResult}, {"gba_barrier_port_await", -ENODEV},
      {"gba_barrier_offer", -ECHILD},         {"gba_barrier_join", -ECHILD},
      {"gba_barrier_begin", kNoResult},       {"gba_barrier_disable", kNoResult},
      {"gba_barrier_leave", kNoResult},       {"gba_barrier_free", kNoResult},
      {"gba_barrier_uses_device", 0},         {"gba_barrier_arrive", kNoResult},
      {"gba_barrier_test", -ECHILD},          {"gba_barrier_poll", -ECHILD},
      {"gba_barrier_sleep", -ECHILD},         {"gba_barrier_wait", -ECHILD},
      {"gba_barrier_conclude", kNoResult},    {"gba_barrier_turn_off", kNoResult},
      {"gba_barrier_missing", -ECHILD},       {"gba_barrier_get_status", -ECHILD},
      {"gba_barrier_destroy", kNoResult},     {"gba_barrier_port_close", kNoResult},
  };
  EXPECT_EQ(names_of(expected, {"gba_barrier_port_open", "gba_barrier_create"}), functions_of("barrier.h"));
  for (const bool is_open : {false, true}) {  // a barrier: the parent has arrived at it, and the child has not
    LoneBarrier lone(path());
    gba_barrier_arrive(lone.barrier, 1);
    if (!is_open) {
      ASSERT_EQ(lone.wait(), GBA_BARRIER_RELEASED) << gba_error_text();
    }
    const auto words = lone.words;
    expect_in_child(expected, [&] {
      Outcomes got;
      gba_device_info info{};
      gba_barrier_status status{};
      gba_group_handle other{};
      std::array<std::uint64_t, GBA_GROUP_MASK_WORDS> mask{};
      got["gba_barrier_test"] = gba_barrier_test(lone.barrier);
      gba_barrier_arrive(lone.barrier, 2);
      got["gba_barrier_poll"] = gba_barrier_poll(lone.barrier);
      got["gba_barrier_sleep"] = gba_barrier_sleep(lone.barrier, 1000);
      got["gba_barrier_wait"] = lone.wait();
      got["gba_barrier_missing"] = gba_barrier_missing(lone.barrier, mask.data());
      got["gba_barrier_get_status"] = gba_barrier_get_status(lone.barrier, &status);
      got["gba_barrier_uses_device"] = gba_barrier_uses_device(lone.barrier);
      got["gba_barrier_offer"] = gba_barrier_offer(lone.barrier, 2, &other);
      got["gba_barrier_join"] = gba_barrier_join(lone.barrier, &lone.handle);
      gba_barrier_turn_off(lone.barrier, -EIO, "forked");
      gba_barrier_conclude(lone.barrier);
      gba_barrier_begin(lone.barrier, 2);
      gba_barrier_disable(lone.barrier);
      gba_barrier_leave(lone.barrier);
      gba_barrier_free(lone.barrier);
      gba_barrier_port_mark_suspect(lone.port);
      gba_barrier_port_reopen(lone.port);
      got["gba_barrier_port_get_info"] = gba_barrier_port_get_info(lone.port, &info);
      got["gba_barrier_port_await"] = gba_barrier_port_await(lone.port, GBA_WAIT_FOREVER);
      gba_barrier_destroy(lone.barrier);
      gba_barrier_port_close(lone.port);
      for (const char* name : {"arrive", "turn_off", "conclude", "begin", "disable", "leave", "free",
                               "port_mark_suspect", "port_reopen", "destroy", "port_close"}) {
        got[std::string("gba_barrier_") + name] = kNoResult;
      }
      return got;
    });
    EXPECT_EQ(lone.words, words) << "the child has stored to its parent's words";
    ASSERT_EQ(lone.wait(), GBA_BARRIER_RELEASED) << gba_error_text();
    for (std::uint64_t k = 2; k <= 10; ++k) {
      gba_barrier_arrive(lone.barrier, k);
      ASSERT_EQ(lone.wait(), GBA_BARRIER_RELEASED) << gba_error_text();
    }
  }
}

}  // namespace
}  // namespace driver_test
