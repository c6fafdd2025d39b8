// SPDX-License-Identifier: Apache-2.0
// Run under an instruction counter: rounds of one arrive and one successful test in a group of one.
//
//   driver_fast_path DEVICE ROUNDS [lossless]
//
// Calls that are not counted wait for the release in between. "lossless" uses gba/barrier.h.
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "gba/barrier.h"

namespace {

int failed(const char* what) {
  std::printf("failed %s: %s\n", what, gba_error_text());
  return 1;
}

int run(gba_device* device, std::uint64_t rounds) {
  gba_group_handle handle{};
  gba_group* group = nullptr;
  if (gba_group_alloc(device, 1, 0, &handle) != 0) {
    return failed("alloc");
  }
  if (gba_group_join(device, &handle, 0, &group) != 0) {
    return failed("join");
  }
  if (gba_group_enable(device, &handle) != 0) {
    return failed("enable");
  }
  for (std::uint64_t k = 1; k <= rounds; ++k) {
    gba_group_arrive(group, k);
    if (gba_group_wait(group, k, GBA_WAIT_FOREVER) != 0) {
      return failed("wait");
    }
    if (gba_group_test(group, k) != 0) {
      return failed("test");
    }
  }
  gba_group_disable(device, &handle);
  gba_group_leave(group);
  gba_group_free(device, &handle);
  return 0;
}

int run_lossless(const char* path, std::uint64_t rounds) {
  gba_barrier_port* port = nullptr;
  gba_barrier* barrier = nullptr;
  std::uint64_t word[2] = {};
  gba_barrier_config config{};
  config.size = sizeof config;
  config.members = 1;
  config.word = word;
  config.words = word;
  gba_group_handle handle{};
  gba_device* device = nullptr;
  if (gba_barrier_port_open(path, &port) != 0 || gba_open(path, &device) != 0) {
    return failed("port");
  }
  config.port = port;
  if (gba_barrier_create(&config, &barrier) != 0) {
    return failed("create");
  }
  if (gba_barrier_offer(barrier, 0, &handle) != 0) {
    return failed("offer");
  }
  if (gba_barrier_join(barrier, &handle) != 0) {
    return failed("join");
  }
  gba_barrier_begin(barrier, 0);
  for (std::uint64_t k = 1; k <= rounds; ++k) {
    gba_barrier_arrive(barrier, k);
    // A wait would complete the barrier and leave no test to count: the group's status says when to test.
    gba_group_status status{};
    do {
      std::this_thread::sleep_for(std::chrono::microseconds{200});
      if (gba_group_get_status(device, handle.group, &status) != 0) {
        return failed("status");
      }
    } while (status.sequence < k);
    std::this_thread::sleep_for(std::chrono::microseconds{200});  // the flag is stored by now
    const int result = gba_barrier_test(barrier);
    if (result != GBA_BARRIER_RELEASED) {
      return failed("test");
    }
  }
  gba_barrier_destroy(barrier);
  gba_barrier_port_close(port);
  gba_close(device);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && (argc != 4 || std::strcmp(argv[3], "lossless") != 0)) {
    return 2;
  }
  gba_device* device = nullptr;
  if (gba_open(argv[1], &device) != 0) {
    return failed("open");
  }
  const std::uint64_t rounds = std::strtoull(argv[2], nullptr, 10);
  const int result = argc == 4 ? run_lossless(argv[1], rounds) : run(device, rounds);
  gba_close(device);
  return result;
}
