// SPDX-License-Identifier: Apache-2.0
// Barriers, and with MPI communicators that do none.
#include <sched.h>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/library.hpp"

namespace bench {
namespace {

constexpr int kWarmUp = 20;
constexpr int kYields = 50;

/// The part of a barrier that remains if each member only yields once.
double yields(int /*count*/) {
  time_each(kWarmUp, [] { Library::barrier(); });
  return time_each(kYields, [] { ::sched_yield(); });
}

template <typename Barrier>
Item item_of(const Worker& worker, const std::string& name, Barrier barrier) {
  const auto figure = [barrier](int count) {
    time_each(kWarmUp, barrier);
    return time_each(count, barrier);
  };
  return {.name = name,
          .figure = figure,
          .base = Library::size() > worker.processors() ? yields : Figure{},
          .most = 20'000,
          .least = 10,
          .nanoseconds = 5e6};
}

/// Arguments: names of figures; for libshmem algorithms.
const Part kBarriers("barriers", [](Worker& worker, const Arguments& arguments) {
  Items items;
  for (const std::string& name : arguments) {
    items.push_back(item_of(worker, name, [] { Library::barrier(); }));
#ifdef BENCH_OURS
    items.back().prepare = [name] {
      if (shmemx_team_set_barrier(SHMEM_TEAM_WORLD, name.c_str()) != 0) {
        throw std::runtime_error("no barrier algorithm " + name);
      }
    };
#endif
  }
  return items;
});

#ifdef BENCH_OURS

/// What the cores of a PE do: `count` barriers, which core 0 times.
struct KernelBarriers {
  const char* algorithm = nullptr;
  int count = 0;
  double nanoseconds = 0;
};

void run_kernel(shmemx_core_t* core, void* argument) {
  auto& work = *static_cast<KernelBarriers*>(argument);
  const auto barrier = [&] { shmemx_core_barrier_by(core, SHMEM_TEAM_WORLD, work.algorithm); };
  time_each(kWarmUp, barrier);
  const double each = time_each(work.count, barrier);
  if (shmemx_core_index(core) == 0) {
    work.nanoseconds = each;
  }
}

/// Barriers of all cores of all PEs. Arguments: numbers of cores of a PE, whose threads stay on the PE's processor.
const Part kKernelBarriers("kernel barriers", [](Worker& /*worker*/, const Arguments& arguments) {
  Items items;
  for (const std::string& cores : arguments) {
    for (const char* algorithm : {"npu_v1", "npu_v2", "npu_v3"}) {
      items.push_back({.name = std::string(algorithm) + ", cores: " + cores,
                       .figure =
                           [algorithm, number = std::stoi(cores)](int count) {
                             KernelBarriers work{algorithm, count};
                             if (shmemx_launch(number, run_kernel, &work) != 0) {
                               throw std::runtime_error(shmemx_error_text());
                             }
                             return work.nanoseconds;
                           },
                       .most = 20'000,
                       .least = 10,
                       .nanoseconds = 5e6});
    }
  }
  return items;
});

/// For bench_all.
const Part kTwoBarriers("2-PE barriers", [](Worker& /*worker*/, const Arguments& /*arguments*/) {
  const auto item = [](const char* name, void (*barrier)()) -> Item {
    return {name, [barrier](int count) { return time_each(count, barrier); }, {}, 10'000, 10'000};
  };
  return Items{item("2-PE barrier, shmem_team_sync", [] { shmem_team_sync(SHMEM_TEAM_WORLD); }),
               item("2-PE barrier, shmem_barrier_all", shmem_barrier_all)};
});

// Barriers while the device comes and goes.

constexpr std::chrono::milliseconds kLong{5};

long long count_of(std::chrono::steady_clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

bool served_by_device(unsigned long long& before) {
  shmemx_team_info_t info;
  shmemx_team_info(SHMEM_TEAM_WORLD, &info);
  const bool more = info.by_device > before;
  before = info.by_device;
  return more;
}

/// Runs barriers until it is ended. Prints when it begins and stops using the device, and the long barriers. Times are
/// those of the monotonic clock, in nanoseconds.
[[noreturn]] void run_barriers(int /*number*/) {
  const bool first = Library::me() == 0;
  bool by_device = false;
  unsigned long long before = 0;
  ::setvbuf(stdout, nullptr, _IOLBF, 4096);
  for (;;) {
    const auto begin = std::chrono::steady_clock::now();
    Library::barrier();
    const auto end = std::chrono::steady_clock::now();
    if (end - begin > kLong) {
      std::printf("long %lld %lld\n", count_of(end.time_since_epoch()), count_of(end - begin));
    }
    const bool now = served_by_device(before);
    if (first && now != by_device) {
      by_device = now;
      std::printf("%s %lld\n", now ? "device" : "software", count_of(end.time_since_epoch()));
    }
  }
}

const Part kLoss("loss", run_barriers);

#endif
#ifdef BENCH_OPENMPI_MPI

/// Argument: the name of the figure.
const Part kTwoCalls("barriers in two calls", [](Worker& worker, const Arguments& arguments) {
  return Items{item_of(worker, arguments.at(0), [] {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  })};
});

/// The lives of communicators that do no barrier. Argument: the name of the figure.
const Part kCommunicators("communicators", [](Worker& /*worker*/, const Arguments& arguments) {
  const auto live = [] {
    MPI_Comm created = MPI_COMM_NULL;
    MPI_Comm duplicate = MPI_COMM_NULL;
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Comm_create(MPI_COMM_WORLD, all, &created);
    MPI_Group_free(&all);
    MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
    MPI_Comm_split(MPI_COMM_WORLD, Library::me() % 2, Library::me(), &half);
    MPI_Comm_free(&created);
    MPI_Comm_free(&duplicate);
    MPI_Comm_free(&half);
  };
  return Items{{.name = arguments.at(0),
                .figure = [live](int count) { return time_each(count, live); },
                .most = 5'000,
                .least = 10,
                .nanoseconds = 2e7}};
});

#endif

}  // namespace
}  // namespace bench
