// SPDX-License-Identifier: Apache-2.0
// MPI_Barrier, MPI_Ibarrier, and making and freeing communicators, with and without the component coll/gba: jobs of
// each kind in turn, so that changes of the machine's speed affect all of them.
#include <gba/gba.h>
#include <stdlib.h>

#include <cstdio>
#include <stdexcept>

#include "bench/fake_device.hpp"
#include "bench/jobs.hpp"
#include "bench/options.hpp"
#include "bench/report.hpp"

namespace bench {
namespace {

/// A configuration of Open MPI.
struct Kind {
  std::string name;
  std::vector<std::string> environment;
  bool by_device = false;  // whether the device does its barriers
};

std::vector<std::string> with_component(const std::string& device_path) {
  return {"OMPI_MCA_mca_base_component_path=" BENCH_OPENMPI_COMPONENTS ":SYS_DEFAULT",
          "OMPI_MCA_coll_gba_device_path=" + device_path};
}

/// `call` is MPI_Barrier or MPI_Ibarrier.
std::vector<Kind> kinds_of_barriers(const FakeDevice& device, const std::string& call) {
  return {{"without the component: " + call, {"OMPI_MCA_coll=^gba"}},
          {"no device: " + call, with_component("")},
          {"device that fails: " + call, with_component("/nonexistent")},
          {"fake device: " + call, with_component(device.socket()), true}};
}

/// The same for communicators that do no barrier, of which the device sees nothing.
std::vector<Kind> kinds_of_lives(const FakeDevice& device) {
  return {{"without the component", {"OMPI_MCA_coll=^gba"}},
          {"component, fake device", with_component(device.socket())}};
}

/// Barriers that the device has done.
std::uint64_t releases_of(const FakeDevice& device) {
  gba_device* opened = nullptr;
  if (gba_open(device.path().c_str(), &opened) != 0) {
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

void print(const std::vector<Series>& all) {
  const Table table("-36 12 12 12 12 12");
  table.print({"", "least us", "median us", "raw trip us", "of without", "least more ns"});
  const Spread without = figures_of(all.front().usable());
  for (const Series& series : all) {
    const auto points = series.usable();
    const Spread figure = figures_of(points);
    table.print({series.name, number(figure.least / 1e3, 3), number(figure.middle / 1e3, 3),
                 number(raws_of(points).middle / 1e3, 3), number(figure.middle / without.middle, 2),
                 number(figure.least - without.least, 0)});
  }
  std::puts("");
}

class Bench {
 public:
  Bench(const OpenMpiWorker& worker, int rounds) : worker_(worker), rounds_(rounds) {}

  void run(int ranks) {
    std::printf("%d processes on %d processors, load %.1f: MPI_Barrier, then MPI_Ibarrier and MPI_Wait\n", ranks,
                own_processors(), load_of_machine());
    measure(kinds_of_barriers(device_, "MPI_Barrier"), "barriers", ranks);
    measure(kinds_of_barriers(device_, "MPI_Ibarrier"), "barriers in two calls", ranks);
    std::printf("%d processes: a communicator created, one duplicated, one split off, and all freed\n", ranks);
    measure(kinds_of_lives(device_), "communicators", ranks);
  }

 private:
  /// Jobs of each kind in turn. Throws if the device did not do the barriers that it should do, or did others: the
  /// figures would be worthless.
  void measure(const std::vector<Kind>& kinds, const char* part, int ranks) const {
    std::vector<Series> all(kinds.size());
    for (int round = 0; round < rounds_; ++round) {
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        const Kind& kind = kinds[i];
        const std::uint64_t before = releases_of(device_);
        const Series series = worker_.run({ranks, {part, kBarrierRepeats, kind.name}, kind.environment}).at(0);
        const std::uint64_t done = releases_of(device_) - before;
        if ((done > 0) != kind.by_device) {
          throw std::runtime_error(kind.name + ": the device has done " + std::to_string(done) + " barriers");
        }
        all[i].name = kind.name;
        all[i].points.insert(all[i].points.end(), series.points.begin(), series.points.end());
      }
    }
    print(all);
  }

  const OpenMpiWorker& worker_;
  int rounds_;
  FakeDevice device_{first_two_cpus().second};
};

constexpr const char* kWhatItShows =
    "Least and median of the repeats in which the raw round trip of a cache line, measured right before and after,\n"
    "stayed the same within a fifth. The fake device is a process that polls on the second processor and serves one\n"
    "member after the other. It shows that barriers use the device, and the component's cost if they do not. It does\n"
    "not show the speed of a switch, which releases all members at once and takes no processor from them.\n";

int run_all(const std::vector<int>& sizes, int rounds) {
  const OpenMpi openmpi(OpenMpiWorker::Library::kMpi, {"barriers"});
  if (!openmpi.installed()) {
    return kSkipped;
  }
  ::unsetenv("GBA_DEVICE");
  Bench bench(openmpi.worker(), rounds);
  std::puts(kWhatItShows);
  for (const int ranks : sizes) {
    bench.run(ranks);
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
