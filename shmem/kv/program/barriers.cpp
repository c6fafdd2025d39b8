// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/barriers.hpp"

#include <chrono>
#include <memory>

#include "gba/gba.h"
#include "shmemx.h"

namespace kv_program {
namespace {

shmemx_team_info_t world_stats() {
  shmemx_team_info_t stats{};
  shmemx_team_info(SHMEM_TEAM_WORLD, &stats);
  return stats;
}

bool uses_device() {
  return std::string(world_stats().algorithm) == "gba";
}

/// The device that the library has opened: opening it again in the same process gives the same one.
std::unique_ptr<gba_device, decltype(&gba_close)> open_device() {
  gba_device* device = nullptr;
  gba_open(nullptr, &device);
  return {device, gba_close};
}

/// Mean of as many barriers as end in good time, whatever the number of PEs.
double mean_barrier_us(Agreement& agreement) {
  constexpr int kTogether = 20;
  constexpr int kMost = 1000;
  constexpr std::chrono::milliseconds kEnough{20};
  for (int i = 0; i < kTogether / 2; ++i) {
    shmem_barrier_all();
  }
  int barriers = 0;
  std::chrono::duration<double, std::micro> time{};
  do {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kTogether; ++i) {
      shmem_barrier_all();
    }
    time += std::chrono::steady_clock::now() - start;
    barriers += kTogether;
    // PE 0 says when it is enough.
  } while (agreement.all(shmem_my_pe() != 0 || (barriers < kMost && time < kEnough)));
  return time.count() / barriers;
}

std::string describe_counters() {
  const auto device = open_device();
  gba_device_counters counters{};
  if (device == nullptr || gba_device_get_counters(device.get(), &counters) != 0) {
    return "the device was lost";
  }
  return std::to_string(counters.arrivals) + " arrivals, " + std::to_string(counters.releases) + " releases, " +
         std::to_string(counters.interrupts) + " interrupts, " + std::to_string(counters.stale) + " repeated, " +
         std::to_string(counters.rejected) + " rejected, " + std::to_string(counters.errors) + " errors";
}

}  // namespace

std::string describe_device() {
  const auto stats = world_stats();
  if (!uses_device()) {
    const std::string reason = stats.reason;
    return "no GBA: software barriers (" + std::string(stats.algorithm) + (reason.empty() ? "" : "; " + reason) + ")";
  }
  const auto device = open_device();
  gba_device_info info{};
  if (device == nullptr || gba_device_get_info(device.get(), &info) != 0) {
    return "lost";
  }
  return std::string(info.path) + " (" + info.backend + ")" + ", port " + std::to_string(info.port) + ", " +
         std::to_string(info.groups) + " groups of up to " + std::to_string(info.members) + " members";
}

BarrierTimes time_barriers(Agreement& agreement) {
  BarrierTimes times{};
  if (uses_device()) {
    const double us = mean_barrier_us(agreement);
    // Lost meanwhile: then those were not its barriers.
    if (uses_device()) {
      times.device = us;
    }
    times.counters = describe_counters();
    shmem_barrier_all();  // PE 0 has read them before anybody leaves the group
  }
  if (shmemx_team_set_barrier(SHMEM_TEAM_WORLD, "npu_v3") == 0) {
    times.software = mean_barrier_us(agreement);
  }
  return times;
}

BarrierCounts count_barriers() {
  const auto stats = world_stats();
  return {stats.by_device, stats.by_software};
}

}  // namespace kv_program
