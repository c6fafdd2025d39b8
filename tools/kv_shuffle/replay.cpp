// SPDX-License-Identifier: Apache-2.0
#include "tools/kv_shuffle/replay.hpp"

#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "gba/gba.h"
#include "shmemx.h"
#include "tools/kv_shuffle/reference.hpp"
#include "tools/kv_shuffle/rounds.hpp"

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

/// The mean time of barriers, measured for about 20 ms.
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
    // PE 0 decides.
  } while (agreement.all(shmem_my_pe() != 0 || (barriers < kMost && time < kEnough)));
  return time.count() / barriers;
}

std::string describe_counters() {
  const auto device = open_device();
  gba_device_counters counters{};
  if (device == nullptr || gba_device_get_counters(device.get(), &counters) != 0) {
    return "the device was lost";
  }
  return fmt::format("{} arrivals, {} releases, {} interrupts, {} repeated, {} rejected, {} errors", counters.arrivals,
                     counters.releases, counters.interrupts, counters.stale, counters.rejected, counters.errors);
}

}  // namespace

std::string describe_device() {
  const auto stats = world_stats();
  if (!uses_device()) {
    const std::string reason = stats.reason;
    return fmt::format("no GBA: software barriers ({}{})", stats.algorithm, reason.empty() ? "" : "; " + reason);
  }
  const auto device = open_device();
  gba_device_info info{};
  if (device == nullptr || gba_device_get_info(device.get(), &info) != 0) {
    return "lost";
  }
  return fmt::format("{} ({}), port {}, {} groups of up to {} members", info.path, info.backend, info.port, info.groups,
                     info.members);
}

void measure_barriers(Agreement& agreement, Results& results) {
  BarrierTimes times{};
  if (uses_device()) {
    const double us = mean_barrier_us(agreement);
    // If the device was lost in between, some of the barriers were in software.
    if (uses_device()) {
      times.device = us;
    }
    times.counters = describe_counters();
    shmem_barrier_all();  // PE 0 has read them before a PE leaves the group
  }
  if (shmemx_team_set_barrier(SHMEM_TEAM_WORLD, "npu_v3") == 0) {
    times.software = mean_barrier_us(agreement);
  }
  results.barriers = times;
  const auto stats = world_stats();
  results.counts = {.by_device = stats.by_device, .by_software = stats.by_software};
}

namespace {

void say_setup(const Options& options, const RoundPlanner& planner, Results& results) {
  results.device = describe_device();
  if (shmem_my_pe() != 0) {
    return;
  }
  results.trace = planner.dealer().trace().name();
  results.requests = planner.dealer().requests();
  results.scale = planner.dealer().scale();
  if (!options.json_only()) {
    say("setup:     " + describe_setup(options, results));
    say("device:    " + results.device);
    say("trace:     " + describe_trace(results));
  }
}

Outcome shuffle_rounds(const Options& options, RoundPlanner& planner, Rounds& rounds, Agreement& agreement,
                       Exporter& exporter, Expected* expected, Results& results) {
  Progress progress;
  for (int round = 1;; ++round) {
    const auto plan = planner.next();
    if (!plan) {
      return plan.error().text;  // "" on PEs that did not see the failure
    }
    if (auto failed = exporter.before(*plan)) {
      return failed;
    }
    const auto ran = rounds.run(*plan);
    if (auto failed = agree(agreement, without_value(ran))) {
      return failed;
    }
    if (auto failed = exporter.after()) {
      return failed;
    }
    for (int i = 0; expected != nullptr && i < options.repeats; ++i) {
      expected->apply(plan->moves(), options.mode == Mode::kMove);
    }
    results.rounds.push_back(*ran);
    results.blocks += ran->blocks * options.repeats;
    results.bytes = results.blocks * options.shape.bytes_of_block();
    const bool until_end = options.rounds == kAllRounds;
    const double done = until_end ? planner.share_of_trace() : static_cast<double>(round) / options.rounds;
    progress.show(done, fmt::format("round {}", round));
    if (done >= 1) {
      return std::nullopt;
    }
  }
}

/// Each PE checks its own caches.
Outcome check(const Options& options, const Caches& caches, const Expected& expected, Agreement& agreement) {
  shmem_barrier_all();
  const std::string wrong = expected.compare(caches);
  if (auto failed = agree(agreement, wrong.empty() ? Result<void>{} : fail(std::errc::io_error, wrong))) {
    return failed;
  }
  if (!options.json_only()) {
    say(fmt::format("check:     every byte of {} caches is correct", caches.shape().caches() * shmem_n_pes()));
  }
  return std::nullopt;
}

Outcome replay_with(const Options& options, RoundPlanner& planner, const Caches& caches, Agreement& agreement,
                    Results& results) {
  if (auto failed = agree(agreement, planner.open())) {
    return failed;
  }
  auto rounds = Rounds::create(options, caches);
  if (!rounds) {
    return failure_of_all(rounds.error().text);
  }
  say_setup(options, planner, results);
  caches.fill();
  std::optional<Expected> expected;
  if (options.check) {
    expected.emplace(shmem_n_pes(), options.shape.blocks);
  }
  Exporter exporter{options, caches, agreement};
  if (auto failed =
          shuffle_rounds(options, planner, **rounds, agreement, exporter, expected ? &*expected : nullptr, results)) {
    return failed;
  }
  measure_barriers(agreement, results);
  if (!options.json_only()) {
    say(describe_results(options, results));
  }
  results.checked = options.check;
  return expected ? check(options, caches, *expected, agreement) : std::nullopt;
}

}  // namespace

Outcome replay(const Options& options, Agreement& agreement, Results& results) {
  if (const std::string wrong = too_large(options.shape); !wrong.empty()) {
    return failure_of_all(wrong);
  }
  RoundPlanner planner{options};
  const Caches caches{options.shape};
  if (!planner.ok() || !caches.ok()) {
    return failure_of_all("there is not enough symmetric memory (SHMEM_SYMMETRIC_SIZE, or fewer --blocks)");
  }
  return replay_with(options, planner, caches, agreement, results);
}

}  // namespace kv_program
