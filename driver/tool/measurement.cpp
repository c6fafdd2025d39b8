// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/measurement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

namespace tool {
namespace {

using Clock = std::chrono::steady_clock;

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

}  // namespace

Result<Measurement> measure(gba_group* group, std::uint64_t first, std::uint64_t rounds) {
  Measurement measurement;
  measurement.ns.reserve(rounds);
  std::uint64_t warm_up_slept = 0;
  for (std::uint64_t k = first; k < first + kWarmUp; ++k) {
    if (const int error = round_trip(group, k, warm_up_slept); error != 0) {
      return failed(error);
    }
  }
  for (std::uint64_t k = first + kWarmUp; k < first + kWarmUp + rounds; ++k) {
    const auto start = Clock::now();
    if (const int error = round_trip(group, k, measurement.slept); error != 0) {
      return failed(error);
    }
    measurement.ns.push_back(static_cast<std::uint64_t>((Clock::now() - start).count()));
  }
  std::sort(measurement.ns.begin(), measurement.ns.end());
  return measurement;
}

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

Json percentiles_of(const Measurement& measurement) {
  Json ns = Json::object();
  for (const auto& [name, per_mille] : kPercentiles) {
    ns[name] = nearest_rank(measurement.ns, per_mille);
  }
  return ns;
}

std::string to_text(const Json& percentiles) {
  std::vector<std::string> texts;
  for (const auto& [name, ns] : percentiles.items()) {
    texts.push_back(fmt::format("{} {}", name, duration(ns.get<std::uint64_t>())));
  }
  return fmt::format("{}", fmt::join(texts, "  "));
}

Result<Json> percentiles_in(const Json& message) {
  const auto found = message.find("ns");
  Json ns = Json::object();
  for (const auto& percentile : kPercentiles) {
    const auto value = number_in(found == message.end() ? Json() : *found, percentile.name, 0, UINT64_MAX);
    if (!value) {
      return value.error();
    }
    ns[percentile.name] = *value;
  }
  return ns;
}

}  // namespace tool
