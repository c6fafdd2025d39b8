// SPDX-License-Identifier: Apache-2.0
#include "bench/measure.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace bench {
namespace {

cpu_set_t allowed_cpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    throw std::system_error(errno, std::generic_category(), "sched_getaffinity");
  }
  return allowed;
}

}  // namespace

CpuPair first_two_cpus() {
  const cpu_set_t allowed = allowed_cpus();
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE && cpus.size() < 2; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) {
      cpus.push_back(cpu);
    }
  }
  if (cpus.size() < 2) {
    throw std::runtime_error("round trips need two processors, and this process may use only one");
  }
  return {cpus[0], cpus[1]};
}

Pinned::Pinned(int cpu) : before_(allowed_cpus()) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot run on processor " + std::to_string(cpu));
  }
}

Pinned::~Pinned() {
  ::sched_setaffinity(0, sizeof before_, &before_);
}

namespace {

constexpr std::chrono::seconds kAnswerLimit{10};
constexpr std::uint64_t kSpinsBetweenLooksAtTheClock = std::uint64_t{1} << 22;
constexpr std::uint64_t kWarmUp = 1'000;

/// Without a pause instruction, to be as fast as the machine can be.
void await(const std::atomic<std::uint64_t>& line, std::uint64_t value) {
  std::chrono::steady_clock::time_point limit{};
  for (std::uint64_t spins = 1; line.load(std::memory_order_acquire) != value; ++spins) {
    if (spins % kSpinsBetweenLooksAtTheClock != 0) {
      continue;
    }
    const auto now = std::chrono::steady_clock::now();
    if (limit == std::chrono::steady_clock::time_point{}) {
      limit = now + kAnswerLimit;
    } else if (now > limit) {
      throw std::runtime_error("no answer from the other side of a round trip for ten seconds");
    }
  }
}

struct Unmap {
  void operator()(PingPong* lines) const { ::munmap(lines, sizeof *lines); }
};

std::unique_ptr<PingPong, Unmap> make_shared_lines() {
  void* memory = ::mmap(nullptr, sizeof(PingPong), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "mmap of shared memory");
  }
  return std::unique_ptr<PingPong, Unmap>(new (memory) PingPong{});
}

[[noreturn]] void echo_process(PingPong& lines, int cpu) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    const Pinned pinned(cpu);
    echo(lines, kWarmUp);
    echo(lines, kRoundTrips);
  } catch (const std::exception&) {
    ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace

double ping(PingPong& lines, std::uint64_t rounds) {
  const std::uint64_t first = lines.request.load(std::memory_order_relaxed) + 1;
  const Stopwatch watch;
  for (std::uint64_t round = first; round < first + rounds; ++round) {
    lines.request.store(round, std::memory_order_release);  // read by echo
    await(lines.reply, round);
  }
  return watch.nanoseconds() / static_cast<double>(rounds);
}

void echo(PingPong& lines, std::uint64_t rounds) {
  const std::uint64_t first = lines.reply.load(std::memory_order_relaxed) + 1;
  for (std::uint64_t round = first; round < first + rounds; ++round) {
    await(lines.request, round);
    lines.reply.store(round, std::memory_order_release);  // read by ping
  }
}

double raw_round_trip(int other_cpu) {
  const auto lines = make_shared_lines();
  const pid_t child = ::fork();
  if (child < 0) {
    throw std::system_error(errno, std::generic_category(), "fork");
  }
  if (child == 0) {
    echo_process(*lines, other_cpu);
  }
  ping(*lines, kWarmUp);
  const double nanoseconds = ping(*lines, kRoundTrips);
  ::waitpid(child, nullptr, 0);
  return nanoseconds;
}

namespace {

constexpr double kSteadyWithin = 0.2;
constexpr std::size_t kEnoughPoints = 3;

Series& series_named(std::vector<Series>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Series& series) { return series.name == name; });
  if (found != all.end()) {
    return *found;
  }
  all.push_back({name, {}});
  return all.back();
}

}  // namespace

bool Point::steady() const {
  return std::abs(raw_after - raw_before) <= kSteadyWithin * std::min(raw_before, raw_after);
}

std::vector<Point> Series::steady() const {
  std::vector<Point> found;
  std::copy_if(points.begin(), points.end(), std::back_inserter(found), [](const Point& p) { return p.steady(); });
  return found;
}

std::vector<Point> Series::usable() const {
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
