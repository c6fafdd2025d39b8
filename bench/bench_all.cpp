// SPDX-License-Identifier: Apache-2.0
// All figures in one run, each compared with the raw speed of the machine at that moment.
#include <fmt/format.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "bench/device_figures.hpp"
#include "bench/jobs.hpp"
#include "bench/options.hpp"

namespace bench {
namespace {

/// The base that a figure is compared with, and its form.
struct Presentation {
  std::string base{};     // name of Point::base; empty: no comparison
  std::size_t bytes = 0;  // moved per repeat: then shown in GB/s instead of nanoseconds
  std::string each{};     // the unit of work that a figure is the time of: then also shown as a rate
};

std::string number(double value, const char* unit) {
  return fmt::format("{:.{}f} {}", value, value < 100 ? 1 : 0, unit);
}

std::string time_or_speed(double nanoseconds, std::size_t bytes) {
  return bytes == 0 ? number(nanoseconds, "ns") : number(static_cast<double>(bytes) / nanoseconds, "GB/s");
}

std::string best_and_middle(const Spread& spread, std::size_t bytes) {
  return time_or_speed(spread.least, bytes) + " / " + time_or_speed(spread.middle, bytes);
}

std::string rate(const Spread& nanoseconds, const std::string& each) {
  return each.empty() ? "" : "; " + number(1e3 / nanoseconds.middle, "million ") + each + " a second";
}

void print_comparison(const std::vector<Point>& points, const Presentation& presentation) {
  std::printf("    %s: %s; median of the time ratio: %.2f\n", presentation.base.c_str(),
              best_and_middle(bases_of(points), presentation.bytes).c_str(), median_ratio(points));
}

void print_machine(int first_cpu, int second_cpu) {
  std::printf("%s, processors %d and %d. Each figure: best / median, over repeats in which the raw round trip of a\n",
              processor_name().c_str(), first_cpu, second_cpu);
  std::printf("cache line, measured right before and after it, stayed the same within a fifth.\n\n");
}

void print_series(const Series& series, const Presentation& presentation) {
  const auto points = series.usable();
  const Spread figure = figures_of(points);
  std::printf("%s: %s%s\n", series.name.c_str(), best_and_middle(figure, presentation.bytes).c_str(),
              rate(figure, presentation.each).c_str());
  if (!presentation.base.empty()) {
    print_comparison(points, presentation);
  }
  std::printf("    raw round trip meanwhile: %s; %zu of %zu repeats%s\n", best_and_middle(raws_of(points), 0).c_str(),
              points.size(), series.points.size(),
              points.size() > series.steady().size() ? ", none or few steady: the machine is busy" : "");
  std::fflush(stdout);
}

Series measure_raw(const CpuPair& cpus) {
  const Pinned pinned(cpus.first);
  const auto raw = [&] { return raw_round_trip(cpus.second); };
  return measure_series("raw round trip of a cache line", raw, [&](Point& point) { point.figure = raw(); });
}

Series measure_memcpy(const CpuPair& cpus) {
  const Pinned pinned(cpus.first);
  constexpr int kWarmUp = 10;
  constexpr int kCopies = 50;
  const std::vector<char> source(kMebibyte, 'x');
  std::vector<char> destination(kMebibyte, 'y');
  const auto copy = [&] {
    std::memcpy(destination.data(), source.data(), kMebibyte);
    asm volatile("" : : "r"(destination.data()) : "memory");  // keeps the copy from being optimised away
  };
  const auto raw = [&] { return raw_round_trip(cpus.second); };
  return measure_series("memcpy of 1 MiB within a process", raw, [&](Point& point) {
    time_each(kWarmUp, copy);
    point.figure = time_each(kCopies, copy);
  });
}

/// Prints the name of a part that fails; the other parts still run.
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

Presentation presentation_of(const std::string& name) {
  if (name.starts_with("2-PE barrier")) {
    return {.base = "raw round trip"};
  }
  if (name.starts_with("put 1 MiB")) {
    return {.base = "memcpy to the same place", .bytes = kMebibyte};
  }
  if (name.starts_with("kv_shuffle")) {
    return {.base = "memcpy of the same blocks", .bytes = kShuffledBytes};
  }
  return {.base = "plain store to the same place"};
}

void print_pes() {
  const base::TempFolder folder;
  for (const Series& series : run_ours(folder, "pe_worker", 2, {"31", "all"})) {
    print_series(series, presentation_of(series.name));
  }
}

void print_members(const CpuPair& cpus, unsigned count) {
  for (const Series& series : measure_members(cpus, count)) {
    print_series(series, {.base = "raw round trip", .each = series.name.starts_with("GBA arrivals") ? "arrivals" : ""});
  }
}

void print_idle(const CpuPair& cpus, unsigned clients) {
  const double switches = idle_switches_per_second(cpus, clients);
  std::printf("GBA, idle, %u members joined: %.1f voluntary context switches per second\n", clients, switches);
}

int run_all() {
  const CpuPair cpus = first_two_cpus();
  print_machine(cpus.first, cpus.second);
  bool good = run_section("raw round trip", [&] { print_series(measure_raw(cpus), {}); });
  good &= run_section("memcpy", [&] { print_series(measure_memcpy(cpus), {.bytes = kMebibyte}); });
  good &= run_section("GBA", [&] { print_series(measure_device(cpus), {.base = "raw round trip"}); });
  for (const unsigned count : {1U, 2U, 8U, 64U, 708U}) {
    good &= run_section("GBA members", [&] { print_members(cpus, count); });
  }
  for (const unsigned clients : {0U, 708U}) {
    good &= run_section("idle GBA", [&] { print_idle(cpus, clients); });
  }
  good &= run_section("PEs", [&] { print_pes(); });
  return good ? 0 : 1;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::run_program({.name = "bench_all",
                             .description = "Measures the device and libshmem on one node. Takes some minutes.",
                             .options = {},
                             .run = bench::run_all},
                            argc, argv);
}
