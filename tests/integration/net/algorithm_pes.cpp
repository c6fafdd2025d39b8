// SPDX-License-Identifier: Apache-2.0
// A PE of a job on several nodes: algorithm [set|name ALGORITHM...]. Makes barriers, checks that none ends early,
// and prints what the library says about them. With "set", each algorithm in turn by shmemx_team_set_barrier; with
// "name", by shmemx_core_barrier_by on two cores.
#include <shmem_device.h>

#include "tests/integration/shmem/pe_checks.hpp"

namespace {

constexpr std::uint64_t kBarriers = 20;

/// Which barrier each PE has entered; written by that PE in the memory of all others.
std::uint64_t* entered;
std::uint64_t number = 0;

/// False: a barrier ended before all PEs had entered it.
bool make_barriers() {
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  for (std::uint64_t i = 0; i < kBarriers; ++i) {
    ++number;
    for (int pe = 0; pe < pes; ++pe) {
      shmem_uint64_p(entered + me, number, pe);
    }
    shmem_barrier_all();
    for (int pe = 0; pe < pes; ++pe) {
      if (entered[pe] < number) {
        return false;
      }
    }
    shmem_sync_all();
  }
  return true;
}

struct Named {
  const char* algorithm;
  bool good;  // as this PE's core 0 sees it
};

/// As make_barriers(), on each core of a kernel.
void make_named_barriers(shmemx_core_t* core, void* argument) {
  auto& named = *static_cast<Named*>(argument);
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  const bool writes = shmemx_core_index(core) == 0;
  for (std::uint64_t i = 0; i < kBarriers; ++i) {
    if (writes) {
      ++number;
      for (int pe = 0; pe < pes; ++pe) {
        shmem_uint64_p(entered + me, number, pe);
      }
    }
    bool good = shmemx_core_barrier_by(core, SHMEM_TEAM_WORLD, named.algorithm) == 0;
    for (int pe = 0; pe < pes; ++pe) {
      good = good && entered[pe] >= number;
    }
    good = shmemx_core_barrier_by(core, SHMEM_TEAM_WORLD, named.algorithm) == 0 && good;
    if (writes) {
      named.good = named.good && good;
    }
  }
}

/// Barriers of a kernel, which names the algorithm of each, with a barrier of the team before and after.
bool make_barriers_by_name(const char* algorithm) {
  shmemx_team_info_t before;
  shmemx_team_info_t after;
  Named named{algorithm, true};
  shmem_barrier_all();
  const bool good = shmemx_team_info(SHMEM_TEAM_WORLD, &before) == 0 &&
                    shmemx_launch(2, make_named_barriers, &named) == 0 &&
                    shmemx_team_info(SHMEM_TEAM_WORLD, &after) == 0 && named.good &&
                    after.by_software == before.by_software + 2 * kBarriers && after.by_device == before.by_device &&
                    std::strcmp(before.algorithm, after.algorithm) == 0;
  shmem_barrier_all();
  return good;
}

/// Makes barriers, and says which way they went by the info and by the statistics of the world team.
bool report() {
  shmemx_team_info_t before;
  shmemx_team_info_t after;
  shmemx_barrier_stats_t stats;
  shmemx_barrier_stats_t first;
  if (shmemx_team_info(SHMEM_TEAM_WORLD, &before) != 0 || shmemx_barrier_stats(SHMEM_TEAM_WORLD, &first) != 0) {
    return false;
  }
  const bool good = make_barriers();
  if (shmemx_team_info(SHMEM_TEAM_WORLD, &after) != 0 || shmemx_barrier_stats(SHMEM_TEAM_WORLD, &stats) != 0) {
    return false;
  }
  const bool counted = after.by_software + after.by_device - before.by_software - before.by_device == 2 * kBarriers &&
                       stats.barriers == after.by_software + after.by_device &&
                       stats.barriers - first.barriers == 2 * kBarriers && stats.by_device == after.by_device;
  std::printf("PE %d: algorithm %s, reason \"%s\", %s, %s, waited %s\n", shmem_my_pe(), after.algorithm, after.reason,
              good ? "none early" : "EARLY", counted ? "counted" : "NOT COUNTED",
              stats.timed > first.timed && stats.wait_ns > first.wait_ns ? "some time" : "no time");
  return good && counted;
}

/// A barrier in two phases counts as one in software.
bool make_split_barrier() {
  shmemx_barrier_stats_t before;
  shmemx_barrier_stats_t after;
  return shmemx_barrier_stats(SHMEM_TEAM_WORLD, &before) == 0 && shmemx_barrier_arrive(SHMEM_TEAM_WORLD) == 0 &&
         shmemx_barrier_wait(SHMEM_TEAM_WORLD) == 0 && shmemx_barrier_stats(SHMEM_TEAM_WORLD, &after) == 0 &&
         after.barriers == before.barriers + 1 && after.by_software == before.by_software + 1;
}

}  // namespace

PE_PART(algorithm) {
  shmem_init();
  entered = static_cast<std::uint64_t*>(shmem_calloc(static_cast<std::size_t>(shmem_n_pes()), sizeof *entered));
  bool good = argc > 1 || report();
  const bool by_name = argc > 1 && std::string(argv[1]) == "name";
  for (int i = 2; i < argc && good; ++i) {
    if (by_name) {
      good = make_barriers_by_name(argv[i]);
      continue;
    }
    good = shmemx_team_set_barrier(SHMEM_TEAM_WORLD, argv[i]) == 0 && report() && make_split_barrier();
  }
  std::fflush(stdout);
  shmem_finalize();
  return good ? 0 : 1;
}
