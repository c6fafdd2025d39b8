// SPDX-License-Identifier: Apache-2.0
// One process of a job that measures barriers: of libshmem, or built by the compilers of Open MPI with
// BENCH_OPENMPI_SHMEM or BENCH_OPENMPI_MPI, of theirs. Prints points (points.hpp).
//
//   barrier_worker FILE NAME...      what each figure is called; of libshmem, the algorithm
#include <sched.h>

#include <algorithm>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "bench/clock.hpp"
#include "bench/conductor.hpp"
#include "bench/library.hpp"
#include "bench/points.hpp"

#if !defined(BENCH_OPENMPI_MPI) && !defined(BENCH_OPENMPI_SHMEM)
#define BENCH_OURS
#include <shmemx.h>
#endif

namespace bench {
namespace {

void use_algorithm([[maybe_unused]] const std::string& name) {
#ifdef BENCH_OURS
  if (shmemx_team_set_barrier(SHMEM_TEAM_WORLD, name.c_str()) != 0) {
    throw std::runtime_error("no barrier algorithm " + name);
  }
#endif
}

constexpr int kRepeats = 9;
constexpr std::uint32_t kWarmUp = 20;
/// Shorter than the machine's moods.
constexpr double kMeasured = 5e6;
constexpr std::uint32_t kYields = 50;

/// What everybody does in a step; the time of each on process 0.
double take_part(Player& player, Step step, std::uint32_t count, const std::vector<std::string>& names) {
  switch (step) {
    case Step::kRaw:
      return player.raw();
    case Step::kBarriers:
      time_each(static_cast<int>(kWarmUp), [] { Library::barrier(); });
      return time_each(static_cast<int>(count), [] { Library::barrier(); });
    case Step::kYields:
      time_each(static_cast<int>(kWarmUp), [] { Library::barrier(); });
      return time_each(static_cast<int>(count), [] { ::sched_yield(); });
    case Step::kAlgorithm:
      use_algorithm(names[count]);
      return 0;
    case Step::kFigure:
    case Step::kBase:  // not of barriers
    case Step::kEnd:
      return 0;
  }
  return 0;
}

class Conductor {
 public:
  Conductor(Player& player, const std::vector<std::string>& names) : player_(player), names_(names) {}

  void measure_all() {
    for (std::uint32_t i = 0; i < names_.size(); ++i) {
      step(Step::kAlgorithm, i);
      write_series(std::cout, {names_[i], measure()});
      std::cout.flush();
    }
    step(Step::kEnd, 0);
  }

 private:
  double step(Step step, std::uint32_t count) {
    player_.begin(step, count);
    const double time = take_part(player_, step, count, names_);
    player_.finish();
    return time;
  }

  /// The base is what remains of a barrier if the members do nothing but give way to each other once; where each has a
  /// processor, the raw round trip.
  std::vector<Point> measure() {
    const double first = step(Step::kBarriers, 10);
    const auto count = static_cast<std::uint32_t>(std::clamp(kMeasured / first, 10.0, 20'000.0));
    std::vector<Point> points;
    for (int i = 0; i < kRepeats; ++i) {
      Point point;
      point.raw_before = step(Step::kRaw, 0);
      point.figure = step(Step::kBarriers, count);
      point.base = Library::size() > player_.processors() ? step(Step::kYields, kYields) : 0;
      point.raw_after = step(Step::kRaw, 0);
      point.base = point.base == 0 ? point.raw() : point.base;
      points.push_back(point);
    }
    return points;
  }

  Player& player_;
  const std::vector<std::string>& names_;
};

void run(const char* file, const std::vector<std::string>& names) {
  const Library library;
  Player player(file, Library::me(), Library::size());
  if (Library::me() == 0) {
    Conductor(player, names).measure_all();
    return;
  }
  for (Step step{}; step != Step::kEnd;) {
    std::uint32_t count = 0;
    step = player.next(count);
    take_part(player, step, count, names);
    player.step_done();
  }
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "Usage: barrier_worker FILE NAME...\n";
    return 2;
  }
  try {
    bench::run(argv[1], {argv + 2, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << "barrier_worker: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
