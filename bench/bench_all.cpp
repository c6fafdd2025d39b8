// SPDX-License-Identifier: Apache-2.0
// All figures in one run, each beside the raw speed of the machine at that moment.
#include <cstdio>
#include <exception>
#include <functional>
#include <string>

#include "bench/report.hpp"
#include "bench/sections.hpp"

namespace bench {
namespace {

constexpr double kGbaAim = 1.5;
constexpr double kIdleAim = 20;
constexpr double kBarrierAim = 0.6;
constexpr double kCopyAim = 1.1;

/// A part that fails is named; the others run all the same.
bool run_section(const char* name, const std::function<void()>& section) {
  try {
    section();
    return true;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "bench_all: %s: %s\n", name, error.what());
    return false;
  }
}

bool begins_with(const std::string& text, const char* prefix) {
  return text.rfind(prefix, 0) == 0;
}

Presentation presentation_of(const std::string& name) {
  if (begins_with(name, "2-PE barrier")) {
    return {"raw round trip", 0, kBarrierAim};
  }
  if (begins_with(name, "put 1 MiB")) {
    return {"memcpy to the same place", kMebibyte, kCopyAim};
  }
  if (begins_with(name, "kv_shuffle")) {
    return {"memcpy of the same blocks", kShuffledBytes, kCopyAim};
  }
  return {"plain store to the same place", 0, 0};
}

void print_pes(const CpuPair& cpus) {
  for (const Series& series : measure_pes(cpus)) {
    print_series(series, presentation_of(series.name));
  }
}

void print_members(const CpuPair& cpus, unsigned count) {
  for (const Series& series : measure_members(cpus, count)) {
    print_series(series, {"raw round trip", 0, 0, begins_with(series.name, "GBA arrivals") ? "arrivals" : ""});
  }
}

void print_idle(const CpuPair& cpus, unsigned clients) {
  const double switches = idle_switches_per_second(cpus, clients);
  std::printf("GBA, idle, %u members joined: %.1f voluntary context switches a second; aim at most %.0f: %s\n", clients,
              switches, kIdleAim, switches <= kIdleAim ? "reached" : "not reached");
}

int run_all() {
  const CpuPair cpus = first_two_cpus();
  print_machine(cpus.first, cpus.second);
  bool good = run_section("raw round trip", [&] { print_series(measure_raw(cpus), {}); });
  good &= run_section("memcpy", [&] { print_series(measure_memcpy(cpus), {"", kMebibyte, 0}); });
  good &= run_section("GBA", [&] { print_series(measure_device(cpus), {"raw round trip", 0, kGbaAim}); });
  for (const unsigned count : {1U, 2U, 8U, 64U, 708U}) {
    good &= run_section("GBA members", [&] { print_members(cpus, count); });
  }
  for (const unsigned clients : {0U, 708U}) {
    good &= run_section("idle GBA", [&] { print_idle(cpus, clients); });
  }
  good &= run_section("PEs", [&] { print_pes(cpus); });
  return good ? 0 : 1;
}

}  // namespace
}  // namespace bench

int main() {
  try {
    return bench::run_all();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_all: %s\n", error.what());
    return 1;
  }
}
