// SPDX-License-Identifier: Apache-2.0
#include "bench/measure.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <iterator>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace bench {

std::vector<int> allowed_cpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    throw std::system_error(errno, std::generic_category(), "sched_getaffinity");
  }
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) {
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

bool run_on(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) {
    CPU_SET(static_cast<unsigned>(cpu), &set);
  }
  return ::sched_setaffinity(0, sizeof set, &set) == 0;
}

CpuPair first_two_cpus() {
  const auto cpus = allowed_cpus();
  if (cpus.size() < 2) {
    throw std::runtime_error("round trips need two processors, and this process may use only one");
  }
  return {cpus[0], cpus[1]};
}

Pinned::Pinned(int cpu) {
  if (!run_on({cpu})) {
    throw std::system_error(errno, std::generic_category(), "cannot run on processor " + std::to_string(cpu));
  }
}

Pinned::~Pinned() {
  run_on(before_);
}

double ping(PingPong& lines, std::uint64_t rounds) {
  const std::uint64_t first = lines.request.load(std::memory_order_relaxed) + 1;
  const Stopwatch watch;
  for (std::uint64_t round = first; round < first + rounds; ++round) {
    lines.request.store(round, std::memory_order_release);  // read by echo
    spin_until([&] { return lines.reply.load(std::memory_order_acquire) == round; });
  }
  return watch.nanoseconds() / static_cast<double>(rounds);
}

void echo(PingPong& lines, std::uint64_t rounds) {
  const std::uint64_t first = lines.reply.load(std::memory_order_relaxed) + 1;
  for (std::uint64_t round = first; round < first + rounds; ++round) {
    spin_until([&] { return lines.request.load(std::memory_order_acquire) == round; });
    lines.reply.store(round, std::memory_order_release);  // read by ping
  }
}

double raw_round_trip(int other_cpu) {
  constexpr std::uint64_t kWarmUp = 1'000;
  PingPong lines{};
  const std::jthread other([&] {
    run_on({other_cpu});
    try {
      echo(lines, kWarmUp + kRoundTrips);
    } catch (const std::runtime_error&) {  // ping() throws as well
    }
  });
  ping(lines, kWarmUp);
  return ping(lines, kRoundTrips);
}

Series& series_named(std::vector<Series>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &Series::name);
  return found != all.end() ? *found : all.emplace_back(Series{name, {}});
}

bool Point::steady() const {
  constexpr double kSteadyWithin = 0.2;
  return std::abs(raw_after - raw_before) <= kSteadyWithin * std::min(raw_before, raw_after);
}

std::vector<Point> Series::steady() const {
  std::vector<Point> found;
  std::copy_if(points.begin(), points.end(), std::back_inserter(found), [](const Point& p) { return p.steady(); });
  return found;
}

std::vector<Point> Series::usable() const {
  constexpr std::size_t kEnoughPoints = 3;
  auto found = steady();
  return found.size() >= kEnoughPoints ? found : points;
}

Series measure_series(const std::string& name, const std::function<double()>& raw,
                      const std::function<void(Point&)>& measure) {
  Series series{name, {}};
  for (Repeats repeats; repeats.another();) {
    Point point;
    point.raw_before = raw();
    measure(point);
    point.raw_after = raw();
    point.base = point.base == 0 ? point.raw() : point.base;
    series.points.push_back(point);
  }
  return series;
}

namespace {

template <typename Quantity>
Spread spread_of(const std::vector<Point>& points, Quantity quantity) {
  std::vector<double> values;
  std::transform(points.begin(), points.end(), std::back_inserter(values), quantity);
  std::sort(values.begin(), values.end());
  return {values.front(), values[values.size() / 2]};
}

}  // namespace

Spread figures_of(const std::vector<Point>& points) {
  return spread_of(points, [](const Point& point) { return point.figure; });
}
Spread bases_of(const std::vector<Point>& points) {
  return spread_of(points, [](const Point& point) { return point.base; });
}
Spread raws_of(const std::vector<Point>& points) {
  return spread_of(points, [](const Point& point) { return point.raw(); });
}
double median_ratio(const std::vector<Point>& points) {
  return spread_of(points, [](const Point& point) { return point.ratio(); }).middle;
}

void write_series(std::ostream& out, const Series& series) {
  for (const Point& point : series.points) {
    out << kPointMark << ' ' << point.raw_before << ' ' << point.figure << ' ' << point.base << ' ' << point.raw_after
        << ' ' << series.name << '\n';
  }
  out.flush();
}

std::vector<Series> read_series(const std::string& text) {
  std::vector<Series> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line);
    std::string mark;
    Point point;
    if (!(in >> mark) || mark != kPointMark) {
      continue;
    }
    std::string name;
    if (!(in >> point.raw_before >> point.figure >> point.base >> point.raw_after >> std::ws) ||
        !std::getline(in, name)) {
      throw std::runtime_error("not a measured point: " + line);
    }
    series_named(all, name).points.push_back(point);
  }
  return all;
}

}  // namespace bench
