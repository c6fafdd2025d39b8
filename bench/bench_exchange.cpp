// SPDX-License-Identifier: Apache-2.0
// Pulls of an exchange (kv_exchange bench), compared with memcpy, with UCX's put on this machine if it is installed,
// and with figures that others have published for blocks of these sizes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/size_text.hpp"
#include "bench/jobs.hpp"
#include "bench/options.hpp"
#include "bench/report.hpp"

namespace bench {
namespace {

constexpr base::Seconds kLimit{900};

struct Settings {
  int repeats = 20;
  std::vector<std::size_t> sizes{1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 1048576};
  std::string svg{};
  bool alone = false;
};

struct Row {
  std::size_t size = 0;
  double pull = 0, memcpy = 0, ratio = 0, unsealed = 0;        // GB/s
  double one_pull = 0, one_find_and_pull = 0, one_memcpy = 0;  // ns
  std::optional<double> ucx{}, ucx_latency{};                  // GB/s, ns
};

/// What others have measured between two machines, by size of a block.
struct Published {
  const char* name;
  const char* what;
  const char* source;
  std::vector<std::pair<std::size_t, double>> speeds;  // bytes, GB/s
};

const std::array<Published, 2> kPublished{{
    {"NIXL, published",
     "NIXL with UCX, RDMA of one adapter, 256 blocks a request",
     "github.com/LMCache/LMCache pull request 4161",
     {{1024, 0.72}, {4096, 4.69}, {16384, 11.7}, {65536, 12.1}}},
    {"Mooncake, published",
     "Mooncake, RDMA of one bonded device, 8 threads, 128 blocks a request",
     "github.com/kvcache-ai/Mooncake issue 1096",
     {{4096, 13.04}}},
}};

std::vector<Row> measure_exchange(const Settings& settings) {
  const auto text =
      output_of({sibling_program("kv_exchange"), "bench", "--json", "--sizes",
                 fmt::format("{}", fmt::join(settings.sizes, ",")), "--repeats", std::to_string(settings.repeats)},
                {}, kLimit);
  std::vector<Row> rows;
  for (const auto& row : nlohmann::json::parse(text)) {
    rows.push_back({.size = row.at("block_bytes"),
                    .pull = row.at("pull_bytes_per_second").get<double>() / 1e9,
                    .memcpy = row.at("memcpy_bytes_per_second").get<double>() / 1e9,
                    .ratio = row.at("ratio"),
                    .unsealed = row.at("read_bytes_per_second").get<double>() / 1e9,
                    .one_pull = row.at("one_pull_ns"),
                    .one_find_and_pull = row.at("one_find_and_pull_ns"),
                    .one_memcpy = row.at("one_memcpy_ns")});
  }
  return rows;
}

void measure_ucx_for(std::vector<Row>& rows) {
  constexpr std::size_t kBytes = std::size_t{1} << 28;
  const CpuPair cpus = first_two_cpus();
  for (Row& row : rows) {
    const int count = static_cast<int>(std::clamp<std::size_t>(kBytes / row.size, 10, 100'000));
    row.ucx = static_cast<double>(row.size) / measure_ucx("ucp_put_bw", row.size, count, cpus);
    row.ucx_latency = measure_ucx("ucp_put_lat", row.size, std::min(count, 20'000), cpus);
  }
}

void print(const std::vector<Row>& rows) {
  const Table table("-10 9 9 7 9 | 9 | 12 12 12 | 12");
  table.print({"block", "pull GB/s", "memcpy", "ratio", "unsealed", "UCX warm", "one pull ns", "find + pull", "memcpy",
               "UCX put"});
  for (const Row& row : rows) {
    table.print({base::size_text(row.size), number(row.pull, 2), number(row.memcpy, 2),
                 number(100 * row.ratio, 0) + "%", number(row.unsealed, 2), number(row.ucx, 2), number(row.one_pull, 0),
                 number(row.one_find_and_pull, 0), number(row.one_memcpy, 0), number(row.ucx_latency, 0)});
  }
  for (const Published& published : kPublished) {
    std::printf("Published: %s (%s):", published.what, published.source);
    for (const auto& [size, speed] : published.speeds) {
      std::printf(" %s %.2f GB/s", base::size_text(size).c_str(), speed);
    }
    std::printf("\n");
  }
}

/// Two plots: speeds of many blocks, and times of one.
void draw(const std::vector<Row>& rows, const std::string& file) {
  auto speeds = logarithmic_plot("Many blocks with one call", "size of a block", "GB/s");
  auto times = logarithmic_plot("One block with one call", "size of a block", "microseconds");
  speeds.x.bytes = times.x.bytes = true;
  constexpr bool kDashed = true;
  for (const Row& row : rows) {
    const auto size = static_cast<double>(row.size);
    add_point(speeds, "pull, from another process", size, row.pull);
    add_point(speeds, "pull, of an unsealed memfd", size, row.unsealed);
    add_point(speeds, "memcpy, within a process", size, row.memcpy, kDashed);
    add_point(speeds, "UCX put, one block in the cache", size, row.ucx, kDashed);
    add_point(times, "pull, from another process", size, row.one_pull / 1e3);
    add_point(times, "memcpy, within a process", size, row.one_memcpy / 1e3, kDashed);
    if (row.ucx_latency) {
      add_point(times, "UCX put, until it is seen", size, *row.ucx_latency / 1e3, kDashed);
    }
    add_point(times, "find and pull", size, row.one_find_and_pull / 1e3);
  }
  for (const Published& published : kPublished) {
    for (const auto& [size, speed] : published.speeds) {
      add_point(speeds, published.name, static_cast<double>(size), speed, kDashed);
    }
  }
  write_svg(file, {speeds, times});
}

int run(const Settings& settings) {
  std::printf(
      "Medians of %d repeats; load of the machine %.1f. 32 MiB of blocks are pulled with one call, and right before\n"
      "copied by memcpy within a process; ratio: of the two speeds, median. Unsealed: pulls of blocks in a memfd that\n"
      "the other process had, without seals: readers do not map it. One pull, find + pull, memcpy: calls for one "
      "block,\n"
      "of 64 in turn. UCX warm: the best average of ucp_put_bw, which puts one block of that size to one\n"
      "place repeatedly; UCX put: of ucp_put_lat, until the other process sees it. Published figures are of other\n"
      "machines, between two of them.\n",
      settings.repeats, load_of_machine());
  auto rows = measure_exchange(settings);
  if (!settings.alone && has_ucx()) {
    measure_ucx_for(rows);
  }
  print(rows);
  draw(rows, settings.svg);
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Settings settings;
  return bench::run_program(
      {.name = "bench_exchange",
       .description = "Measures pulls of an exchange, compared with memcpy, UCX and published figures.",
       .options = {{"--repeats", &settings.repeats, "measurements of each", {{1, 1000}}},
                   {"--sizes", &settings.sizes, "bytes of a block"},
                   {"--svg", &settings.svg, "write a chart to this file"},
                   {"--alone", &settings.alone, "without UCX"}},
       .run = [&] { return bench::run(settings); },
       .needs_two_processors = true},
      argc, argv);
}
