// SPDX-License-Identifier: Apache-2.0
// A PE of bench_loss: runs barriers until it is ended, and prints when it begins and stops using the device, and the
// long barriers. Times are those of the monotonic clock, in nanoseconds.
//
//   loss_worker PAUSE_US      PE 0 enters each barrier PAUSE_US later
#include <shmem.h>
#include <shmemx.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLong{5};

long long count_of(Clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

bool served_by_device(unsigned long long& before) {
  shmemx_team_info_t info;
  shmemx_team_info(SHMEM_TEAM_WORLD, &info);
  const bool more = info.by_device > before;
  before = info.by_device;
  return more;
}

}  // namespace

int main(int argc, char** argv) {
  const std::chrono::microseconds pause(argc > 1 ? std::atoi(argv[1]) : 0);
  ::setvbuf(stdout, nullptr, _IOLBF, 4096);
  shmem_init();
  const bool first = shmem_my_pe() == 0;
  bool by_device = false;
  unsigned long long before = 0;
  for (;;) {
    if (first && pause.count() > 0) {
      std::this_thread::sleep_for(pause);
    }
    const auto begin = Clock::now();
    shmem_barrier_all();
    const auto end = Clock::now();
    if (end - begin > kLong + pause) {
      std::printf("long %lld %lld\n", count_of(end.time_since_epoch()), count_of(end - begin - pause));
    }
    const bool now = served_by_device(before);
    if (first && now != by_device) {
      by_device = now;
      std::printf("%s %lld\n", now ? "device" : "software", count_of(end.time_since_epoch()));
    }
  }
}
