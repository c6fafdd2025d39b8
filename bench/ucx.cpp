// SPDX-License-Identifier: Apache-2.0
#include "bench/ucx.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "bench/jobs.hpp"

namespace bench {
namespace {

constexpr int kRuns = 3;
constexpr int kTries = 50;
constexpr std::chrono::milliseconds kBetweenTries{20};
constexpr std::chrono::seconds kLimit{20};

std::vector<std::string> command(const std::vector<std::string>& before, int port, int cpu) {
  std::vector<std::string> line = before;
  line.insert(line.end(),
              {"/usr/bin/env", "ucx_perftest", "-p", std::to_string(port), "-c", std::to_string(cpu), "-f"});
  return line;
}

int next_port() {
  static int port = 20'000 + ::getpid() % 10'000;
  port = port < 60'000 ? port + 1 : 20'000;
  return port;
}

/// The average in microseconds is the third number of the last line.
double average_of(const std::string& output) {
  const auto end = output.find_last_not_of(" \n");
  const auto begin = output.rfind('\n', end);
  std::istringstream line(output.substr(begin == std::string::npos ? 0 : begin, end - begin + 1));
  double iterations = 0;
  double middle = 0;
  double average = 0;
  if (!(line >> iterations >> middle >> average)) {
    throw std::runtime_error("ucx_perftest printed no figures: " + output);
  }
  return average * 1e3;
}

}  // namespace

bool has_ucx() {
  // Its usage text; `env` prints an error if the program is not installed.
  const std::string usage = base::run({"/usr/bin/env", "ucx_perftest", "-h"}, {}, kLimit).output;
  const bool found = usage.find("UCT only") != std::string::npos || usage.find("UCP only") != std::string::npos;
  if (!found) {
    std::printf("UCX is skipped (package ucx-utils)\n");
  }
  return found;
}

double measure_ucx_once(const std::string& test, std::size_t size, int count, const CpuPair& cpus,
                        const UcxPlace& place, int outstanding) {
  const int port = next_port();
  const base::Process server(command(place.server, port, cpus.second), place.environment,
                             {.output = base::Output::kDiscarded, .grace = kGrace});
  auto client = command(place.client, port, cpus.first);
  const auto warm_up = std::to_string(std::max(count / 10, 2));
  client.insert(client.end(), {"-t", test, "-s", std::to_string(size), "-n", std::to_string(count), "-w", warm_up, "-O",
                               std::to_string(outstanding), place.address});
  for (int i = 0;; ++i) {
    try {
      return average_of(output_of(client, place.environment, kLimit));
    } catch (const std::exception&) {
      if (i == kTries) {
        throw;
      }
    }
    std::this_thread::sleep_for(kBetweenTries);  // until the server listens
  }
}

double measure_ucx(const std::string& test, std::size_t size, int count, const CpuPair& cpus) {
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < kRuns; ++i) {
    best = std::min(best, measure_ucx_once(test, size, count, cpus));
  }
  return best;
}

}  // namespace bench
