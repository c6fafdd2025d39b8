// SPDX-License-Identifier: Apache-2.0
// gba bench: the round trip of a barrier with one member, in percentiles.
#include <fmt/format.h>
#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "driver/tool/device.hpp"

namespace tool {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kMeasured =
    "from the arrival's store to the release seen in the flag, by a member that spins and is the group's only one";
constexpr std::uint64_t kWarmUp = 1'000;
constexpr std::uint64_t kTimeLimitNs = 5'000'000'000;
/// About a millisecond, far more than a round trip: the device has fallen asleep, or a message was lost.
constexpr unsigned kSpins = 100'000;

struct Percentile {
  const char* name;
  unsigned per_mille;
};
constexpr Percentile kPercentiles[] = {{"min", 0},   {"p50", 500},   {"p90", 900},
                                       {"p99", 990}, {"p99.9", 999}, {"max", 1000}};

struct Measurement {
  std::vector<std::uint64_t> ns;  // of each round, sorted
  std::uint64_t slept = 0;        // rounds that took longer than a spin
};

std::uint64_t nearest_rank(const std::vector<std::uint64_t>& sorted, unsigned per_mille) {
  const std::size_t rank = (sorted.size() * per_mille + 999) / 1000;
  return sorted[rank == 0 ? 0 : rank - 1];
}

/// 0, or -errno. Spins; `slept` counts the rounds in which that was not enough.
int round_trip(gba_group* group, std::uint64_t sequence, std::uint64_t& slept) {
  gba_group_arrive(group, sequence);
  for (unsigned spins = 0; spins < kSpins; ++spins) {
    const int result = gba_group_test(group, sequence);
    if (result != -EAGAIN) {
      return result;
    }
  }
  ++slept;
  return gba_group_wait(group, sequence, kTimeLimitNs);
}

Result<Measurement> measure(gba_group* group, std::uint64_t rounds) {
  Measurement measurement;
  measurement.ns.reserve(rounds);
  std::uint64_t warm_up_slept = 0;
  for (std::uint64_t k = 1; k <= kWarmUp; ++k) {
    if (const int error = round_trip(group, k, warm_up_slept); error != 0) {
      return failed(error);
    }
  }
  for (std::uint64_t k = kWarmUp + 1; k <= kWarmUp + rounds; ++k) {
    const auto start = Clock::now();
    if (const int error = round_trip(group, k, measurement.slept); error != 0) {
      return failed(error);
    }
    measurement.ns.push_back(static_cast<std::uint64_t>((Clock::now() - start).count()));
  }
  std::sort(measurement.ns.begin(), measurement.ns.end());
  return measurement;
}

/// A condition that makes the figures worse than the device; empty if there is none.
std::string caveat(const gba_device_info& info) {
  cpu_set_t set;
  CPU_ZERO(&set);
  const bool alone = ::sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1;
  if (info.is_process == 0) {
    return "";
  }
  return alone ? "the device is a process too, and this one may use only one processor"
               : "the device is a process and takes its turn on the processors";
}

void print_result(const Invocation& invocation, const gba_device_info& info, const Measurement& measurement) {
  Json ns = Json::object();
  std::vector<std::string> texts;
  for (const auto& [name, per_mille] : kPercentiles) {
    const std::uint64_t value = nearest_rank(measurement.ns, per_mille);
    ns[name] = value;
    texts.push_back(fmt::format("{} {}", name, duration(value)));
  }
  const std::string path = static_cast<const char*>(info.path);
  const std::string remark = caveat(info);
  if (invocation.json) {
    print_json(Json{{"device", path},
                    {"port", info.port},
                    {"measured", kMeasured},
                    {"rounds", measurement.ns.size()},
                    {"longer_than_a_spin", measurement.slept},
                    {"remark", remark.empty() ? Json() : Json(remark)},
                    {"ns", ns}});
    return;
  }
  print_text(fmt::format("{}, port {}: {}\n", path, info.port, count(measurement.ns.size(), "barrier")));
  print_text(fmt::format("measured: {}\n          {}\n", kMeasured, fmt::join(texts, "  ")));
  if (measurement.slept > 0) {
    print_text(fmt::format("          {} took longer than a spin\n", count(measurement.slept, "round")));
  }
  if (!remark.empty()) {
    print_text(fmt::format("remark:   {}\n", remark));
  }
}

int bench(const Invocation& invocation, std::uint64_t rounds) {
  const auto device = open_device(invocation.device);
  if (!device) {
    return report(invocation, device.error());
  }
  const auto info = info_of(device->get());
  if (!info) {
    return report(invocation, info.error());
  }
  auto group = PrivateGroup::make(device->get());
  if (!group) {
    return report(invocation, group.error());
  }
  const auto measurement = measure(group->get(), rounds);
  if (!measurement) {
    return report(invocation, measurement.error());
  }
  if (const int error = group->end(); error != 0) {
    return report(invocation, {error, gba_error_text()});
  }
  print_result(invocation, *info, *measurement);
  return kDone;
}

}  // namespace

void declare_bench(CLI::App& app, Invocation& invocation) {
  const auto rounds = std::make_shared<std::uint64_t>(100'000);
  auto* const command = declare(app, invocation, "bench", "round trips of a barrier with one member, in percentiles",
                                [&invocation, rounds] { return bench(invocation, *rounds); });
  take_device(*command, invocation);
  command->add_option("--rounds", *rounds, "how many barriers")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000'000}))
      ->capture_default_str();
}

}  // namespace tool
