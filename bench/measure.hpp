// SPDX-License-Identifier: Apache-2.0
// Used by every benchmark: a clock, two processors, the raw speed of the machine, and points, which are figures with a
// simpler operation to compare them with.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
/// Moved by the kv_shuffle of bench_all.
constexpr std::size_t kShuffledBytes = 8 * kMebibyte;

/// Runs from its construction on.
class Stopwatch {
 public:
  [[nodiscard]] double nanoseconds() const {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// The number of measurements: enough for a good median, but at most `enough_nanoseconds` on a busy machine, where an
/// operation may take a thousand times longer; at least one.
class Repeats {
 public:
  explicit Repeats(double enough_nanoseconds = 8e9) : enough_(enough_nanoseconds) {}
  [[nodiscard]] bool another() { return done_++ == 0 || (done_ <= kMost && watch_.nanoseconds() < enough_); }

 private:
  static constexpr int kMost = 31;

  double enough_;
  Stopwatch watch_;
  int done_ = 0;
};

/// Nanoseconds that one of `count` calls of `action` takes on average.
template <typename Action>
double time_each(int count, Action&& action) {
  const Stopwatch watch;
  for (int i = 0; i < count; ++i) {
    action();
  }
  return watch.nanoseconds() / count;
}

/// The processors that the calling thread may use. Throws std::system_error.
std::vector<int> allowed_cpus();
/// Allows it to use these. False if the kernel refuses that.
bool run_on(const std::vector<int>& cpus);

struct CpuPair {
  int first = 0;
  int second = 0;
};

/// The first two processors that this process may use. Throws std::runtime_error if there is only one.
CpuPair first_two_cpus();

/// Pins the calling thread to one processor while the object exists, and restores its previous processors. The
/// constructor throws std::system_error.
class Pinned {
 public:
  explicit Pinned(int cpu);
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned();

 private:
  std::vector<int> before_ = allowed_cpus();
};

/// Without a pause instruction, to be as fast as the machine can be. Throws std::runtime_error if `done` is not true
/// within a minute.
template <typename Done>
void spin_until(Done done) {
  constexpr std::uint64_t kSpinsBetweenLooksAtTheClock = std::uint64_t{1} << 22;
  constexpr std::chrono::seconds kLimit{60};
  std::chrono::steady_clock::time_point end{};
  for (std::uint64_t spins = 1; !done(); ++spins) {
    if (spins % kSpinsBetweenLooksAtTheClock != 0) {
      continue;
    }
    const auto now = std::chrono::steady_clock::now();
    if (end == std::chrono::steady_clock::time_point{}) {
      end = now + kLimit;
    } else if (now > end) {
      throw std::runtime_error("the other side has not answered for a minute");
    }
  }
}

/// In shared memory, initially zero. Each side writes one line and reads the other, as in a barrier.
struct PingPong {
  alignas(128) std::atomic<std::uint64_t> request;
  alignas(128) std::atomic<std::uint64_t> reply;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "works between processes");

/// About 2 ms at 200 ns: shorter than the changes of the machine's speed, but long enough to measure.
constexpr std::uint64_t kRoundTrips = 10'000;

/// Makes `rounds` round trips while the other side is in `echo` with the same number; returns the nanoseconds of one.
/// Both throw as spin_until() does.
double ping(PingPong& lines, std::uint64_t rounds = kRoundTrips);
void echo(PingPong& lines, std::uint64_t rounds = kRoundTrips);

/// The raw round trip between the calling thread and a thread on `other_cpu`. REQUIRES: the caller is pinned to another
/// processor.
double raw_round_trip(int other_cpu);

/// One repeat, in nanoseconds. A virtual machine moves between cores that are near or distant, which changes every
/// figure by up to ten times: only values of the same point are compared, and a point is dropped if the machine changed
/// during it.
struct Point {
  double raw_before = 0;
  double figure = 0;
  double base = 0;  // the simpler operation, if any, or the raw round trip
  double raw_after = 0;

  [[nodiscard]] double raw() const { return (raw_before + raw_after) / 2; }
  [[nodiscard]] double ratio() const { return figure / base; }
  /// True if the raw round trips before and after differ by at most a fifth.
  [[nodiscard]] bool steady() const;
};

/// A named figure with its repeats.
struct Series {
  std::string name;
  std::vector<Point> points;

  [[nodiscard]] std::vector<Point> steady() const;
  /// The steady points; all of them if those are fewer than three.
  [[nodiscard]] std::vector<Point> usable() const;
};

/// The series of that name. Adds an empty one if no series has it.
Series& series_named(std::vector<Series>& all, const std::string& name);

/// Measures points until there are enough: `raw` before and after `measure`, which fills in the figure and, if it is
/// not the raw round trip, the base.
Series measure_series(const std::string& name, const std::function<double()>& raw,
                      const std::function<void(Point&)>& measure);

/// Least and median of a quantity. REQUIRES: points are not empty.
struct Spread {
  double least = 0;
  double middle = 0;
};
Spread figures_of(const std::vector<Point>& points);
Spread bases_of(const std::vector<Point>& points);
Spread raws_of(const std::vector<Point>& points);
double median_ratio(const std::vector<Point>& points);

/// Text with one line per point, for another process to read. read_series throws std::runtime_error for malformed
/// points; it ignores lines that do not begin with kPointMark.
inline constexpr const char* kPointMark = "bench-point";
void write_series(std::ostream& out, const Series& series);
std::vector<Series> read_series(const std::string& text);

}  // namespace bench
