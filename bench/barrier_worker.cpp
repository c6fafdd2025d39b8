// SPDX-License-Identifier: Apache-2.0
// One process of a job that measures barriers: those of libshmem or, built by Open MPI's compilers with
// BENCH_OPENMPI_SHMEM or BENCH_OPENMPI_MPI, those of Open MPI.
//
//   barrier_worker FILE REPEATS NAME...      NAME: of a figure; for libshmem an algorithm; for MPI, MPI_Ibarrier at its
//                                            end measures that with MPI_Wait
#include <sched.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "bench/library.hpp"
#include "bench/worker.hpp"

#if !defined(BENCH_OPENMPI_MPI) && !defined(BENCH_OPENMPI_SHMEM)
#define BENCH_OURS
#include <shmemx.h>
#endif

namespace bench {
namespace {

constexpr int kWarmUp = 20;
constexpr int kYields = 50;

void use_algorithm([[maybe_unused]] const std::string& name) {
#ifdef BENCH_OURS
  if (shmemx_team_set_barrier(SHMEM_TEAM_WORLD, name.c_str()) != 0) {
    throw std::runtime_error("no barrier algorithm " + name);
  }
#endif
}

double barriers(std::uint32_t count) {
  time_each(kWarmUp, [] { Library::barrier(); });
  return time_each(static_cast<int>(count), [] { Library::barrier(); });
}

#ifdef BENCH_OPENMPI_MPI
double barriers_in_two_calls(std::uint32_t count) {
  time_each(kWarmUp, [] { Library::barrier_in_two_calls(); });
  return time_each(static_cast<int>(count), [] { Library::barrier_in_two_calls(); });
}
#endif

/// The part of a barrier that remains if each member only yields once.
double yields(std::uint32_t /*count*/) {
  time_each(kWarmUp, [] { Library::barrier(); });
  return time_each(kYields, [] { ::sched_yield(); });
}

std::vector<Item> barrier_items(const Worker& worker, const std::vector<std::string>& names) {
  std::vector<Item> items;
  for (const std::string& name : names) {
    Item item{.name = name, .figure = barriers, .most = 20'000, .least = 10, .nanoseconds = 5e6};
    item.prepare = [name] { use_algorithm(name); };
#ifdef BENCH_OPENMPI_MPI
    const std::string in_two_calls = "MPI_Ibarrier";
    if (name.size() >= in_two_calls.size() &&
        name.compare(name.size() - in_two_calls.size(), in_two_calls.size(), in_two_calls) == 0) {
      item.figure = barriers_in_two_calls;
    }
#endif
    if (Library::size() > worker.processors()) {
      item.base = yields;
    }
    items.push_back(std::move(item));
  }
  return items;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::measure_items(argc, argv, bench::barrier_items);
}
