// SPDX-License-Identifier: Apache-2.0
// Puts, gets and collective calls between hosts, which are network namespaces of this machine: Open MPI's OpenSHMEM and
// MPI, libshmem, and ucx_perftest as the limit, in turn over the same network.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "bench/jobs.hpp"
#include "bench/options.hpp"
#include "bench/report.hpp"
#include "bench/worker.hpp"
#include "tests/support/hosts.hpp"
#include "tests/support/job_on_hosts.hpp"
#include "tests/support/openmpi_network.hpp"

namespace bench {
namespace {

using test_support::Hosts;

/// The limit of one job.
constexpr test_support::Seconds kLimit{900};

struct Settings {
  std::vector<std::string> nodes{"2", "4", "8", "2x2"};
  int repeats = 5;
  int turns = 3;
  std::string json{};
  bool alone = false;
};

/// The processes of a job, the same number on each host.
struct Shape {
  int nodes = 0;
  int each = 1;
  [[nodiscard]] int processes() const { return nodes * each; }
};

/// "8" nodes with a process on each, or "2x2".
Shape shape_of(const std::string& text) {
  std::istringstream in(text);
  Shape shape;
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

/// What is wrong with the text of a shape, or "".
std::string wrong_shape(const std::string& text) {
  try {
    shape_of(text);
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

/// What all libraries measure at once.
struct Task {
  const Hosts& hosts;
  Shape shape;
  Job job;
};

/// A library that does the same work. Returns its measurements, or throws.
struct Contender {
  std::string name;
  std::function<std::vector<Series>(const Task& task)> measure;
  std::vector<Series> series{};
  std::string error{};  // why it has no figures, or no further ones
};

void append(std::vector<Series>& all, const std::vector<Series>& more) {
  for (const Series& series : more) {
    auto& points = series_named(all, series.name).points;
    points.insert(points.end(), series.points.begin(), series.points.end());
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

constexpr const char* kOneSided = "one-sided between nodes";
constexpr const char* kCollective = "collective between nodes";

Contender ucx_contender(const std::string& name) {
  return {"ucx_perftest " + name, [name](const Task& task) {
            std::vector<Series> all;
            const UcxPlace place{
                task.hosts.on(1, {}),
                task.hosts.on(0, {}),
                Hosts::ipv4(1),
                {"UCX_TLS=tcp", "UCX_NET_DEVICES=eth0", "UCX_LOG_LEVEL=fatal", "UCX_WARN_UNUSED_ENV_VARS=n"}};
            for (const UcxTest& test : ucx_tests()) {
              if (test.test == name && task.job.arguments.front() == kOneSided) {
                const double time =
                    measure_ucx_once(name, test.bytes, test.count, first_two_cpus(), place, test.outstanding);
                all.push_back({test.item, {Point{1, time, 1, 1}}});
              }
            }
            return all;
          }};
}

Contender openmpi_contender(const std::string& name, OpenMpiWorker::Library library) {
  Contender contender{name, {}};
  try {
    const auto worker = std::make_shared<OpenMpiWorker>(library, std::vector<std::string>{"between_nodes"});
    contender.measure = [worker](const Task& task) {
      Job job = task.job;
      job.environment = test_support::openmpi_over_ucx();
      if (job.pes > own_processors()) {  // each node behaves as if it had the machine alone
        job.environment.emplace_back("OMPI_MCA_mpi_yield_when_idle=1");
      }
      // The output includes the error messages of the job.
      return worker->run(job,
                         {task.hosts.on(0, {"sh", "-c", "exec \"$@\" 2>&1", "sh"}), task.hosts.slots(task.shape.each)});
    };
  } catch (const std::exception& error) {
    contender.error = error.what();
  }
  return contender;
}

Contender our_contender() {
  return {"libshmem", [](const Task& task) {
            std::vector<int> host_of(static_cast<std::size_t>(task.job.pes));
            std::ranges::generate(host_of, [&, pe = 0]() mutable { return pe++ / task.shape.each; });
            const base::TempFolder folder;
            std::vector<std::string> command{worker_program(), new_worker_file(folder)};
            command.insert(command.end(), task.job.arguments.begin(), task.job.arguments.end());
            const test_support::JobOnHosts job(task.hosts, host_of, command, {"UCX_NET_DEVICES=eth0"});
            for (const int code : job.codes(kLimit)) {
              if (code != 0) {
                throw std::runtime_error("a PE ended with " + std::to_string(code) + ":\n" + job.output());
              }
            }
            return read_series(job.pe(0).output());
          }};
}

/// The bytes of a stream; other items have no bandwidth.
double bytes_of(const std::string& item) {
  for (const std::size_t bytes : kStreamed) {
    if (item == put_stream(bytes) || item == get_stream(bytes)) {
      return static_cast<double>(bytes);
    }
  }
  return 0;
}

class Bench {
 public:
  explicit Bench(const Settings& settings) : settings_(settings) {
    if (has_ucx()) {
      for (const char* test : {"ucp_put_lat", "tag_lat", "stream_bw"}) {
        contenders_.push_back(ucx_contender(test));
      }
    }
    if (!settings.alone) {
      contenders_.push_back(openmpi_contender("Open MPI, OpenSHMEM", OpenMpiWorker::Library::kShmem));
      contenders_.push_back(openmpi_contender("Open MPI, MPI", OpenMpiWorker::Library::kMpi));
    }
    contenders_.push_back(our_contender());
  }

  bool run() {
    measure({2, 1}, kOneSided, "PE 0 and the memory of PE 1, on another node");
    for (const std::string& nodes : settings_.nodes) {
      const Shape shape = shape_of(nodes);
      const std::string each = shape.each == 1 ? "a process" : std::to_string(shape.each) + " processes";
      measure(shape, kCollective, std::to_string(shape.nodes) + " nodes, " + each + " on each");
    }
    if (!settings_.json.empty()) {
      write_file(settings_.json, json_.dump(2) + '\n');
    }
    return good_;
  }

 private:
  void measure(const Shape& shape, const std::string& part, const std::string& title) {
    const Hosts hosts(shape.nodes);
    const Task task{hosts, shape, {shape.processes(), {part, std::to_string(settings_.repeats)}}};
    for (Contender& contender : contenders_) {
      contender.series.clear();
    }
    for (int turn = 0; turn < settings_.turns; ++turn) {
      for (Contender& contender : contenders_) {
        try {
          append(contender.series, contender.error.empty() ? contender.measure(task) : std::vector<Series>{});
        } catch (const std::exception& error) {
          contender.error = error.what();
          good_ = false;
        }
      }
    }
    std::printf("\n%s; %d processors, load %.1f\n", title.c_str(), own_processors(), load_of_machine());
    table_.print({"", "", "least us", "median us", "MB/s", "ratio"});
    std::vector<Series> all;
    for (const Contender& contender : contenders_) {
      append(all, contender.series);
    }
    for (const Series& series : all) {
      print(series.name, shape);
    }
    for (const Contender& contender : contenders_) {
      if (!contender.error.empty()) {
        std::printf("%s: not available: %s\n", contender.name.c_str(), contender.error.c_str());
        json_["not_available"][contender.name] = contender.error;
      }
    }
    std::fflush(stdout);
  }

  void print(const std::string& item, const Shape& shape) {
    double first = 0;
    std::string head = item;
    for (const Contender& contender : contenders_) {
      const auto series = std::ranges::find(contender.series, item, &Series::name);
      if (series == contender.series.end()) {
        continue;
      }
      const Spread time = figures_of(series->usable());
      first = first == 0 ? time.middle : first;
      const double bytes = bytes_of(item);
      const auto rate = static_cast<long>(bytes / time.middle * 1e3);
      table_.print({std::exchange(head, ""), contender.name, number(time.least / 1e3, 2), number(time.middle / 1e3, 2),
                    rate > 0 ? std::to_string(rate) : "-", number(time.middle / first, 2)});
      json_["results"].push_back({{"nodes", shape.nodes},
                                  {"processes", shape.processes()},
                                  {"item", item},
                                  {"library", contender.name},
                                  {"least_ns", time.least},
                                  {"median_ns", time.middle},
                                  {"bytes", bytes},
                                  {"ratio_to_first", time.middle / first},
                                  {"points", series->points.size()}});
    }
  }

  const Settings& settings_;
  std::vector<Contender> contenders_;
  Table table_{"-20 -24 12 12 8 8"};
  bool good_ = true;
  nlohmann::json json_{{"results", nlohmann::json::array()}};
};

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
