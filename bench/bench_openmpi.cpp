// SPDX-License-Identifier: Apache-2.0
// MPI_Barrier, MPI_Ibarrier, and making and freeing communicators, with and without the component coll/gba: jobs of
// each kind in turn, so that changes of the machine's speed affect all of them.
#include <stdlib.h>

#include <cstdio>
#include <exception>
#include <stdexcept>

#include "bench/fake_device.hpp"
#include "bench/jobs.hpp"
#include "bench/measure.hpp"
#include "bench/options.hpp"
#include "gba/gba.h"

namespace bench {
namespace {

/// A configuration of Open MPI.
struct Kind {
  std::string name;
  std::vector<std::string> environment;
  bool by_device = false;
  std::vector<Point> points;
};

std::vector<std::string> with_component(const std::string& device_path) {
  return {"OMPI_MCA_mca_base_component_path=" BENCH_OPENMPI_COMPONENTS ":SYS_DEFAULT",
          "OMPI_MCA_coll_gba_device_path=" + device_path};
}

/// `call` is MPI_Barrier or MPI_Ibarrier.
std::vector<Kind> all_kinds(const FakeDevice& device, const std::string& call) {
  return {{"without the component: " + call, {"OMPI_MCA_coll=^gba"}, false, {}},
          {"no device: " + call, with_component(""), false, {}},
          {"device that fails: " + call, with_component("/nonexistent"), false, {}},
          {"fake device: " + call, with_component(device.socket()), true, {}}};
}

/// The same for communicators that do no barrier, of which the device sees nothing.
std::vector<Kind> kinds_of_lives(const FakeDevice& device) {
  return {{"without the component", {"OMPI_MCA_coll=^gba"}, false, {}},
          {"component, fake device", with_component(device.socket()), false, {}}};
}

/// Barriers that the device has done.
std::uint64_t releases_of(const FakeDevice& device) {
  gba_device* opened = nullptr;
  if (gba_open(("vfio-user:" + device.socket()).c_str(), &opened) != 0) {
    throw std::runtime_error(gba_error_text());
  }
  gba_device_counters counters{};
  const int error = gba_device_get_counters(opened, &counters);
  gba_close(opened);
  if (error != 0) {
    throw std::runtime_error("the fake device does not give the number of its barriers");
  }
  return counters.releases;
}

/// Throws if the device did not do the barriers that it should do, or did others: the figures would be worthless.
void measure(Kind& kind, const OpenMpiProgram& program, const FakeDevice& device, int ranks) {
  const std::uint64_t before = releases_of(device);
  for (const Series& series : program.run(ranks, {kBarrierRepeats, kind.name}, kind.environment)) {
    kind.points.insert(kind.points.end(), series.points.begin(), series.points.end());
  }
  const std::uint64_t done = releases_of(device) - before;
  if ((done > 0) != kind.by_device) {
    throw std::runtime_error(kind.name + ": the device has done " + std::to_string(done) + " barriers");
  }
}

void print(const std::vector<Kind>& kinds) {
  std::printf("%-36s %12s %12s %12s %12s %12s\n", "", "least us", "median us", "raw trip us", "of without",
              "least more ns");
  Spread without;
  for (const Kind& kind : kinds) {
    const auto points = Series{kind.name, kind.points}.usable();
    const Spread figure = figures_of(points);
    if (&kind == &kinds.front()) {
      without = figure;
    }
    std::printf("%-36s %12.3f %12.3f %12.3f %12.2f %12.0f\n", kind.name.c_str(), figure.least / 1e3,
                figure.middle / 1e3, raws_of(points).middle / 1e3, figure.middle / without.middle,
                figure.least - without.least);
  }
  std::printf("\n");
  std::fflush(stdout);
}

constexpr const char* kWhatItShows =
    "Least and median of the repeats in which the raw round trip of a cache line, measured right before and after,\n"
    "stayed the same within a fifth. The fake device is a process that polls on the second processor and serves one\n"
    "member after the other. It shows that barriers use the device, and the component's cost if they do not. It does\n"
    "not show the speed of a switch, which releases all members at once and takes no processor from them.\n\n";

/// Measures jobs of each kind in turn.
void measure_all(std::vector<Kind> kinds, const OpenMpiProgram& program, const FakeDevice& device, int ranks,
                 int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (Kind& kind : kinds) {
      measure(kind, program, device, ranks);
    }
  }
  print(kinds);
}

int run_all(const std::vector<int>& sizes, int rounds) {
  const base::TempFolder folder;
  const auto barriers = openmpi_program(folder, "mpic++", "BENCH_OPENMPI_MPI", "barrier_worker");
  const auto lives = openmpi_program(folder, "mpic++", "BENCH_OPENMPI_MPI", "communicator_worker");
  if (!barriers || !lives) {
    return kSkipped;
  }
  ::unsetenv("GBA_DEVICE");
  const FakeDevice device(first_two_cpus().second);
  std::printf("%s", kWhatItShows);
  for (const int ranks : sizes) {
    std::printf("%d processes on %d processors, load %.1f: MPI_Barrier, then MPI_Ibarrier and MPI_Wait\n", ranks,
                own_processors(), load_of_machine());
    for (const char* call : {"MPI_Barrier", "MPI_Ibarrier"}) {
      measure_all(all_kinds(device, call), *barriers, device, ranks, rounds);
    }
    std::printf("%d processes: a communicator created, one duplicated, one split off, and all freed\n", ranks);
    measure_all(kinds_of_lives(device), *lives, device, ranks, rounds);
  }
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  std::vector<int> sizes{2, 4, 8};
  int rounds = 5;
  return bench::run_program(
      {.name = "bench_openmpi",
       .description = "Measures MPI_Barrier, MPI_Ibarrier, and communicators that do no barrier, with and without the "
                      "component coll/gba, for each number of processes.",
       .options = {{"PROCESSES", &sizes, "numbers of processes", {{2, 708}}},
                   {"--repeats", &rounds, "jobs of each kind; each measures nine times", {{1, 1000}}}},
       .run = [&] { return bench::run_all(sizes, rounds); }},
      argc, argv);
}
