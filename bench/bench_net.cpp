// SPDX-License-Identifier: Apache-2.0
// Puts, gets and collective calls between hosts, which are network namespaces of this machine: Open MPI's OpenSHMEM and
// MPI, libshmem, and ucx_perftest as the limit, in turn over the same network.
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/jobs.hpp"
#include "bench/measure.hpp"
#include "bench/options.hpp"
#include "bench/ucx.hpp"
#include "bench/worker.hpp"
#include "tests/support/hosts.hpp"
#include "tests/support/job_on_hosts.hpp"
#include "tests/support/openmpi_network.hpp"

namespace bench {
namespace {

using test_support::Hosts;

/// The limit of one job.
constexpr test_support::Seconds kLimit{180};

/// The processes of a job, the same number on each host.
struct Shape {
  int nodes;
  int each;
  [[nodiscard]] int processes() const { return nodes * each; }
  [[nodiscard]] bool oversubscribed() const { return processes() > own_processors(); }
};

/// "8" nodes with a process on each, or "2x2".
Shape shape_of(const std::string& text) {
  std::istringstream in(text);
  Shape shape{0, 1};
  char times = 'x';
  in >> shape.nodes;
  if (!in.eof()) {
    in >> times >> shape.each;
  }
  constexpr int kMost = 64;
  const bool good = !in.fail() && in.eof() && times == 'x' && shape.nodes >= 2 && shape.nodes <= kMost &&
                    shape.each >= 1 && shape.each <= kMost;
  if (!good) {
    throw std::runtime_error("not a number of nodes from 2 to 64, nor NODESxPROCESSES: " + text);
  }
  return shape;
}

struct Settings {
  std::vector<std::string> nodes{"2", "4", "8", "2x2"};
  int repeats = 5;
  int turns = 3;
  std::string json{};
  bool alone = false;
};

/// A library that does the same work. Returns its measurements, or throws.
struct Contender {
  std::string name;
  std::function<std::vector<Series>(const Hosts& hosts, const Shape& shape, const std::string& part)> measure;
  std::vector<Series> series{};
  std::string error{};  // why it has no figures, or no further ones
};

void append(std::vector<Series>& all, const std::vector<Series>& more) {
  for (const Series& series : more) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const Series& one) { return one.name == series.name; });
    if (same == all.end()) {
      all.push_back(series);
    } else {
      same->points.insert(same->points.end(), series.points.begin(), series.points.end());
    }
  }
}

struct UcxTest {
  std::string item;
  std::string test;
  std::size_t bytes;
  int count;
  int outstanding;
};

/// Streams of puts, and gets, are missing: over tcp UCX does them in software, for which the other side must make
/// progress, and the server of ucx_perftest does so only once per millisecond. Its messages show the limit of the path.
std::vector<UcxTest> ucx_tests() {
  std::vector<UcxTest> tests{{kPutLatency, "ucp_put_lat", 8, 2'000, 1}, {kPutLatency, "tag_lat", 8, 2'000, 1}};
  for (const std::size_t bytes : kStreamed) {
    const int count = static_cast<int>((std::size_t{64} << 20) / bytes);
    for (const auto& item : {put_stream(bytes), get_stream(bytes)}) {
      tests.push_back({item, "stream_bw", bytes, count, 16});
    }
  }
  return tests;
}

std::vector<Series> measure_ucx_between(const Hosts& hosts, const std::string& part, const std::string& only) {
  if (part != "one-sided") {
    return {};
  }
  const UcxPlace place{hosts.on(1, {}),
                       hosts.on(0, {}),
                       Hosts::ipv4(1),
                       {"UCX_TLS=tcp", "UCX_NET_DEVICES=eth0", "UCX_LOG_LEVEL=fatal", "UCX_WARN_UNUSED_ENV_VARS=n"}};
  std::vector<Series> all;
  for (const UcxTest& test : ucx_tests()) {
    if (test.test != only) {
      continue;
    }
    const double time = measure_ucx_once(test.test, test.bytes, test.count, first_two_cpus(), place, test.outstanding);
    all.push_back({test.item, {Point{1, time, 1, 1}}});
  }
  return all;
}

class Bench {
 public:
  explicit Bench(const Settings& settings) : settings_(settings) {
    if (has_ucx()) {
      for (const std::string test : {"ucp_put_lat", "tag_lat", "stream_bw"}) {
        contenders_.push_back(
            {"ucx_perftest " + test, [test](const Hosts& hosts, const Shape& /*shape*/, const std::string& part) {
               return measure_ucx_between(hosts, part, test);
             }});
      }
    }
    if (!settings.alone) {
      add_openmpi("Open MPI, OpenSHMEM", "shmemc++", "BENCH_OPENMPI_SHMEM");
      add_openmpi("Open MPI, MPI", "mpic++", "BENCH_OPENMPI_MPI");
    }
    contenders_.push_back({"libshmem", [this](const Hosts& hosts, const Shape& shape, const std::string& part) {
                             return measure_ours(hosts, shape, part);
                           }});
  }

  bool run() {
    measure({2, 1}, "one-sided", "PE 0 and the memory of PE 1, on another node");
    for (const std::string& nodes : settings_.nodes) {
      const Shape shape = shape_of(nodes);
      const std::string each = shape.each == 1 ? "a process" : std::to_string(shape.each) + " processes";
      measure(shape, "collective", std::to_string(shape.nodes) + " nodes, " + each + " on each");
    }
    if (settings_.json.empty()) {
      return good_;
    }
    std::ofstream out(settings_.json);
    out << json_.dump(2) << '\n';
    if (!out.flush()) {
      throw std::runtime_error("cannot write " + settings_.json);
    }
    return good_;
  }

 private:
  void add_openmpi(const std::string& name, const char* compiler, const char* macro) {
    Contender contender{name, {}};
    try {
      const auto program = std::make_shared<OpenMpiProgram>(folder_, compiler, macro, "net_worker");
      contender.measure = [this, program](const Hosts& hosts, const Shape& shape, const std::string& part) {
        // The output includes the error messages of the job.
        const Place place{hosts.on(0, {"sh", "-c", "exec \"$@\" 2>&1", "sh"}), hosts.slots(shape.each)};
        return program->run(shape.processes(), arguments(part), openmpi_environment(shape), place);
      };
    } catch (const std::exception& error) {
      contender.error = error.what();
    }
    contenders_.push_back(std::move(contender));
  }

  [[nodiscard]] std::vector<std::string> arguments(const std::string& part) const {
    return {std::to_string(settings_.repeats), part};
  }

  /// Each node behaves as if it had the machine alone.
  static std::vector<std::string> openmpi_environment(const Shape& shape) {
    auto environment = test_support::openmpi_over_ucx();
    if (shape.oversubscribed()) {
      environment.emplace_back("OMPI_MCA_mpi_yield_when_idle=1");
    }
    return environment;
  }

  [[nodiscard]] std::vector<Series> measure_ours(const Hosts& hosts, const Shape& shape,
                                                 const std::string& part) const {
    std::vector<int> host_of;
    host_of.reserve(static_cast<std::size_t>(shape.processes()));
    for (int pe = 0; pe < shape.processes(); ++pe) {
      host_of.push_back(pe / shape.each);
    }
    std::vector<std::string> command{sibling_program("net_worker"), new_control_file(folder_)};
    for (const std::string& argument : arguments(part)) {
      command.push_back(argument);
    }
    const test_support::JobOnHosts job(hosts, host_of, command, {"UCX_NET_DEVICES=eth0"});
    for (const int code : job.codes(kLimit)) {
      if (code != 0) {
        throw std::runtime_error("a PE ended with " + std::to_string(code) + ":\n" + job.output());
      }
    }
    return read_series(job.pe(0).output());
  }

  void measure(const Shape& shape, const std::string& part, const std::string& title) {
    const Hosts hosts(shape.nodes);
    for (Contender& contender : contenders_) {
      contender.series.clear();
    }
    for (int turn = 0; turn < settings_.turns; ++turn) {
      for (Contender& contender : contenders_) {
        if (!contender.error.empty()) {
          continue;
        }
        try {
          append(contender.series, contender.measure(hosts, shape, part));
        } catch (const std::exception& error) {
          contender.error = error.what();
          good_ = false;
        }
      }
    }
    std::printf("\n%s; %d processors, load %.1f\n%-20s %-24s %12s %12s %8s %8s\n", title.c_str(), own_processors(),
                load_of_machine(), "", "", "least us", "median us", "MB/s", "ratio");
    for (const std::string& item : items()) {
      print(item, shape);
    }
    for (const Contender& contender : contenders_) {
      if (contender.error.empty()) {
        continue;
      }
      std::printf("%s: not available: %s\n", contender.name.c_str(), contender.error.c_str());
      json_["not_available"][contender.name] = contender.error;
    }
    std::fflush(stdout);
  }

  [[nodiscard]] std::vector<std::string> items() const {
    std::vector<std::string> names;
    for (const Contender& contender : contenders_) {
      for (const Series& series : contender.series) {
        if (std::find(names.begin(), names.end(), series.name) == names.end()) {
          names.push_back(series.name);
        }
      }
    }
    return names;
  }

  void print(const std::string& item, const Shape& shape) {
    double first = 0;
    std::string head = item;
    for (const Contender& contender : contenders_) {
      for (const Series& series : contender.series) {
        if (series.name != item) {
          continue;
        }
        const Spread time = figures_of(series.usable());
        if (first == 0) {
          first = time.middle;
        }
        const double bytes = bytes_of(item);
        std::printf("%-20s %-24s %12.2f %12.2f ", std::exchange(head, "").c_str(), contender.name.c_str(),
                    time.least / 1e3, time.middle / 1e3);
        const auto rate = static_cast<long>(bytes / time.middle * 1e3);
        std::printf("%8s %8.2f\n", rate > 0 ? std::to_string(rate).c_str() : "-", time.middle / first);
        json_["results"].push_back({{"nodes", shape.nodes},
                                    {"processes", shape.processes()},
                                    {"item", item},
                                    {"library", contender.name},
                                    {"least_ns", time.least},
                                    {"median_ns", time.middle},
                                    {"bytes", bytes},
                                    {"ratio_to_first", time.middle / first},
                                    {"points", series.points.size()}});
      }
    }
  }

  /// The bytes of a stream; other items have no bandwidth.
  static double bytes_of(const std::string& item) {
    for (const std::size_t bytes : kStreamed) {
      if (item == put_stream(bytes) || item == get_stream(bytes)) {
        return static_cast<double>(bytes);
      }
    }
    return 0;
  }

  const Settings& settings_;
  base::TempFolder folder_;
  std::vector<Contender> contenders_;
  bool good_ = true;
  nlohmann::json json_{{"results", nlohmann::json::array()}};
};

/// What is wrong with the text of a shape, or "".
std::string wrong_shape(const std::string& text) {
  try {
    shape_of(text);
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

constexpr const char* kWhatItShows =
    "Hosts are network namespaces of this machine, joined by a bridge: packets go through its kernel and are copied\n"
    "by its processors, which also run the processes of all nodes. With more nodes than processors the figures depend\n"
    "on the scheduler as much as on a library. They compare libraries under the same conditions; they do not predict\n"
    "the speed of a network. All libraries use UCX over tcp, in turn; ratio: of medians, to the first line. Puts and\n"
    "gets of a size form a stream, complete at its end; one way: half of a word's round trip (MPI and tag_lat: of a\n"
    "message). The size of fcollect and alltoall is that of one block; broadcasts come from all processes in turn. If\n"
    "there are more processes than processors, Open MPI is told to yield.\n";

int run(const Settings& settings) {
  if (const auto missing = Hosts::missing()) {
    std::printf("%s\n", missing->c_str());
    return kSkipped;
  }
  std::printf("%s", kWhatItShows);
  return Bench(settings).run() ? 0 : 1;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Settings settings;
  return bench::run_program(
      {.name = "bench_net",
       .description = "Measures puts, gets and collective calls between hosts that are network namespaces.",
       .options =
           {{"NODES", &settings.nodes, "nodes of collective calls, or NODESxPROCESSES", {}, {}, bench::wrong_shape},
            {"--repeats", &settings.repeats, "measurements of each in a job", {{1, 1000}}},
            {"--turns", &settings.turns, "jobs of each library", {{1, 1000}}},
            {"--alone", &settings.alone, "libshmem and UCX only"},
            {"--json", &settings.json, "also write the results to this file"}},
       .run = [&] { return bench::run(settings); },
       .needs_two_processors = true},
      argc, argv);
}
