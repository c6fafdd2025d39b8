// SPDX-License-Identifier: Apache-2.0
#include "bench/report.hpp"

#include <cstdio>
#include <fstream>

namespace bench {
namespace {

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("model name", 0) == 0) {
      return line.substr(line.find(':') + 2);
    }
  }
  return "unknown processor";
}

std::string number(double value, const char* unit) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %s", value < 100 ? 1 : 0, value, unit);
  return text;
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
  const auto base = spread_of(points, [](const Point& p) { return p.base; });
  const double ratio = spread_of(points, [](const Point& p) { return p.ratio(); }).middle;
  std::printf("    %s: %s; median of the time ratio: %.2f", presentation.base.c_str(),
              best_and_middle(base, presentation.bytes).c_str(), ratio);
  if (presentation.aim > 0) {
    std::printf("; aim at most %.2f: %s", presentation.aim, ratio <= presentation.aim ? "reached" : "not reached");
  }
  std::printf("\n");
}

}  // namespace

void print_machine(int first_cpu, int second_cpu) {
  std::printf("%s, processors %d and %d. Each figure: best / median, over repeats in which the raw round trip of a\n",
              processor_name().c_str(), first_cpu, second_cpu);
  std::printf("cache line, measured right before and after it, stayed the same within a fifth.\n\n");
}

void print_series(const Series& series, const Presentation& presentation) {
  const auto points = series.usable();
  const auto figure = spread_of(points, [](const Point& p) { return p.figure; });
  const auto raw = spread_of(points, [](const Point& p) { return p.raw(); });
  std::printf("%s: %s%s\n", series.name.c_str(), best_and_middle(figure, presentation.bytes).c_str(),
              rate(figure, presentation.each).c_str());
  if (!presentation.base.empty()) {
    print_comparison(points, presentation);
  }
  std::printf("    raw round trip meanwhile: %s; %zu of %zu repeats%s\n", best_and_middle(raw, 0).c_str(),
              points.size(), series.points.size(),
              points.size() > series.steady().size() ? ", none or few steady: the machine is busy" : "");
  std::fflush(stdout);
}

}  // namespace bench
