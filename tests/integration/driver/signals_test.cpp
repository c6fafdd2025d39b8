// SPDX-License-Identifier: Apache-2.0
// The signal masks of threads that use a device: those of the program, which may block all signals, and the library's.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.hpp"
#include "gba/barrier.h"
#include "tests/integration/driver/fixture.hpp"
#include "tests/unit/driver/end_of_child.hpp"

namespace driver_test {
namespace {

using SignalsTest = DeviceTest;

std::uint64_t bit(int signal) {
  return std::uint64_t{1} << (signal - 1);
}

/// All that can be blocked, but SIGBUS.
std::uint64_t all_but_bus_errors() {
  std::uint64_t all = 0;
  for (int signal = 1; signal < SIGRTMIN; ++signal) {
    all |= signal < 32 && signal != SIGBUS && signal != SIGKILL && signal != SIGSTOP ? bit(signal) : 0;
  }
  return all;
}

/// The signals that a thread of this process blocks.
std::uint64_t blocked_in(const std::string& thread) {
  std::ifstream status("/proc/self/task/" + thread + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("SigBlk:")) {
      return std::stoull(line.substr(7), nullptr, 16);
    }
  }
  return ~std::uint64_t{0};  // it has ended
}

std::vector<std::string> other_threads() {
  std::vector<std::string> threads;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    if (entry.path().filename() != std::to_string(::gettid())) {
      threads.push_back(entry.path().filename());
    }
  }
  return threads;
}

/// Replaces the mapped memory of the device by memory that raises SIGBUS, as the kernel does if it is unplugged.
bool unplug() {
  std::FILE* const maps = std::fopen("/proc/self/maps", "re");
  std::array<char, 512> line{};
  bool found = false;
  while (maps != nullptr && std::fgets(line.data(), line.size(), maps) != nullptr) {
    unsigned long first = 0;
    unsigned long end = 0;
    if (std::strstr(line.data(), "gba-doorbells") != nullptr &&
        std::sscanf(line.data(), "%lx-%lx", &first, &end) == 2) {
      const base::UniqueFd empty(::memfd_create("unplugged", MFD_CLOEXEC));
      auto* const place = reinterpret_cast<void*>(first);
      found = ::mmap(place, end - first, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, empty.get(), 0) == place;
    }
  }
  return found;
}

/// A barrier of one member on a device that is then unplugged, with all signals blocked: 0 if the loss is an error.
int lose_device(const std::string& path) {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
  gba_device* device = nullptr;
  gba_group_handle handle{};
  gba_group* group = nullptr;
  if (gba_open(path.c_str(), &device) != 0 || gba_group_alloc(device, 1, 0, &handle) != 0 ||
      gba_group_join(device, &handle, 0, &group) != 0 || gba_group_enable(device, &handle) != 0) {
    return 2;
  }
  if (!unplug()) {
    return 3;
  }
  gba_group_arrive(group, 1);
  return gba_group_wait(group, 1, GBA_WAIT_FOREVER) == -ENXIO ? 0 : 4;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they install handlers of their own
// Servers block all signals and take them in one thread.
TEST_F(SignalsTest, AThreadThatBlocksAllOfThemOutlivesAnUnpluggedDevice) {
  EXPECT_EQ(gba::test::end_of_child([this] { ::_exit(lose_device(path())); }), 0);
}

// A thread that the program starts later takes over the mask of the one that opened the device; another one joins.
TEST_F(SignalsTest, AThreadThatJoinsDoesSoToo) {
  EXPECT_EQ(gba::test::end_of_child([this] {
              gba_device* device = nullptr;
              if (gba_open(path().c_str(), &device) != 0) {
                ::_exit(2);
              }
              int outcome = 1;
              std::thread([&] { outcome = lose_device(path()); }).join();
              ::_exit(outcome);
            }),
            0);
}

/// In a thread that blocks all signals and has made no call before: what `use` makes of a group of an unplugged device.
template <typename Use>
int lose_in_another_thread(const std::string& path, Use use) {
  gba_device* device = nullptr;
  gba_group_handle handle{};
  gba_group* group = nullptr;
  if (gba_open(path.c_str(), &device) != 0 || gba_group_alloc(device, 1, 0, &handle) != 0 ||
      gba_group_join(device, &handle, 0, &group) != 0 || gba_group_enable(device, &handle) != 0 || !unplug()) {
    return 2;
  }
  int outcome = 1;
  std::thread([&] {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
    outcome = use(device, group);
  }).join();
  return outcome;
}

// Each call alone, since the first that a thread makes must be enough.
TEST_F(SignalsTest, AThreadThatHasOnlyTheHandlesDoesSoToo) {
  using Use = int (*)(gba_device*, gba_group*);
  const std::pair<const char*, Use> uses[] = {
      {"arrive",
       [](gba_device* /*device*/, gba_group* group) {
         gba_group_arrive(group, 1);
         return gba_group_wait(group, 1, GBA_WAIT_FOREVER) == -ENXIO ? 0 : 4;
       }},
      {"sleep",
       [](gba_device* /*device*/, gba_group* group) {
         return gba_group_sleep(group, 1, 1'000'000) == -ENXIO ? 0 : 5;  // which arrives again
       }},
      {"others",
       [](gba_device* device, gba_group* group) {
         gba_group_test(group, 1);
         const bool tests = (blocked_in(std::to_string(::gettid())) & bit(SIGBUS)) == 0;
         gba_device_counters counters{};
         return tests && gba_device_get_counters(device, &counters) == 0 ? 0 : 6;
       }},
  };
  for (const auto& [name, use] : uses) {
    EXPECT_EQ(gba::test::end_of_child([this, &use] { ::_exit(lose_in_another_thread(path(), use)); }), 0) << name;
  }
}
#endif

/// Each call of gba.h that has a handle, whether or not it would access the memory of this device.
TEST_F(SignalsTest, TheFirstCallOfAThreadUnblocksBusErrors) {
  const auto device = open();
  const auto handle = alloc(device.get(), 1);
  const auto group = join(device.get(), handle, 0);
  ASSERT_EQ(gba_group_enable(device.get(), &handle), 0) << gba_error_text();
  gba_device_info info{};
  gba_device_counters counters{};
  gba_group_status status{};
  gba_group_handle other{};
  gba_group* more = nullptr;
  std::uint64_t value = 0;
  std::uint64_t mask[GBA_GROUP_MASK_WORDS];
  const std::map<std::string, std::function<void()>> calls = {
      {"gba_device_get_info", [&] { gba_device_get_info(device.get(), &info); }},
      {"gba_device_get_counters", [&] { gba_device_get_counters(device.get(), &counters); }},
      {"gba_device_check", [&] { gba_device_check(device.get()); }},
      {"gba_group_get_status", [&] { gba_group_get_status(device.get(), 0, &status); }},
      {"gba_device_read_register", [&] { gba_device_read_register(device.get(), 0, 4, &value); }},
      {"gba_device_write_register", [&] { gba_device_write_register(device.get(), 0, 4, 0); }},
      {"gba_device_reset", [&] { gba_device_reset(device.get()); }},
      {"gba_group_alloc", [&] { gba_group_alloc(device.get(), 1, 0, &other); }},
      {"gba_group_enable", [&] { gba_group_enable(device.get(), &handle); }},
      {"gba_group_disable", [&] { gba_group_disable(device.get(), &other); }},
      {"gba_group_free", [&] { gba_group_free(device.get(), &other); }},
      {"gba_group_join", [&] { gba_group_join(device.get(), &other, 0, &more); }},
      {"gba_group_arrive", [&] { gba_group_arrive(group.get(), 1); }},
      {"gba_group_test", [&] { gba_group_test(group.get(), 1); }},
      {"gba_group_sleep", [&] { gba_group_sleep(group.get(), 1, 1); }},
      {"gba_group_wait", [&] { gba_group_wait(group.get(), 1, 1); }},
      {"gba_group_missing", [&] { gba_group_missing(group.get(), mask); }},
  };
  std::set<std::string> others = functions_of("gba.h");
  for (const auto& [name, call] : calls) {
    EXPECT_EQ(others.erase(name), 1U) << name;
    std::thread([&name = name, &call = call] {
      sigset_t all;
      ::sigfillset(&all);
      ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
      call();
      EXPECT_EQ(blocked_in(std::to_string(::gettid())) & bit(SIGBUS), 0U) << name;
    }).join();
  }
  EXPECT_EQ(others, (std::set<std::string>{"gba_version", "gba_error_text", "gba_list", "gba_open", "gba_open_with",
                                           "gba_close", "gba_group_leave"}));
  gba_group_leave(more);
}

TEST_F(SignalsTest, OpeningUnblocksBusErrorsAndNothingElse) {
  const std::string me = std::to_string(::gettid());
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const std::uint64_t blocked = blocked_in(me);
  EXPECT_NE(blocked & bit(SIGBUS), 0U);
  const auto device = open();
  EXPECT_EQ(blocked_in(me), blocked & ~bit(SIGBUS));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_F(SignalsTest, ThreadsOfTheLibraryTakeBusErrorsOnly) {
  gba_barrier_port* port = nullptr;
  ASSERT_EQ(gba_barrier_port_open(path().c_str(), &port), 0) << gba_error_text();
  kill_device();
  gba_barrier_port_mark_suspect(port);
  gba_barrier_port_reopen(port);  // a thread looks for the device as long as it is away
  const auto threads = other_threads();
  EXPECT_GE(threads.size(), 1U);
  for (const auto& thread : threads) {
    // The C library blocks all signals in a thread that has not run yet.
    for (int tries = 0; tries < 4000 && (blocked_in(thread) & bit(SIGBUS)) != 0; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_EQ(blocked_in(thread) & all_but_bus_errors(), all_but_bus_errors()) << std::hex << blocked_in(thread);
  }
  gba_barrier_port_close(port);
  const std::string me = std::to_string(::gettid());
  EXPECT_EQ(blocked_in(me) & bit(SIGUSR1), 0U) << "the caller's mask is as before";
}

}  // namespace
}  // namespace driver_test
