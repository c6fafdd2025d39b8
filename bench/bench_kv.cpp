// SPDX-License-Identifier: Apache-2.0
// kv_shuffle of blocks of many sizes in one run, compared with memcpy of the same blocks by as many threads, and with
// UCX and Open MPI if they are installed.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>

#include "bench/jobs.hpp"
#include "bench/kv_part.hpp"
#include "bench/options.hpp"
#include "bench/report.hpp"
#include "bench/worker.hpp"

namespace bench {
namespace {

struct Settings {
  int repeats = 9;
  std::vector<int> cores{1, 2};
  std::size_t mebibytes = 64;
  std::string path = "auto";
  std::string svg{};
  bool alone = false;
};

const std::vector<KvPart> kParts{{}, {.both_ways = true}, {.few = true}, {.few = true, .same = true}};

/// Blocks of one size, in GB/s. `best` is from the least time, `middle` from the median.
struct Speeds {
  double best, middle;
};

struct Row {
  std::size_t block = 0;
  Speeds ours{}, copy{};
  double ratio = 0;  // the median ratio of libshmem to memcpy in the same repeat
  double microseconds = 0;
  std::optional<double> ucx{}, openmpi{};
};

double speed(std::size_t bytes, double nanoseconds) {
  return static_cast<double>(bytes) / nanoseconds;
}

std::size_t block_of(const Series& series) {
  const auto* const found = std::ranges::find(kKvBlocks, series.name, size_text);
  if (found == std::end(kKvBlocks)) {
    throw std::runtime_error("a worker measured blocks of " + series.name);
  }
  return *found;
}

Row row_of(const KvPart& part, const Series& series) {
  const std::size_t block = block_of(series);
  // If both PEs send, the bytes of both.
  const std::size_t bytes = part.bytes_moved(block) * (part.both_ways ? 2 : 1);
  const auto speeds = [&](const Spread& time) { return Speeds{speed(bytes, time.least), speed(bytes, time.middle)}; };
  const Spread time = figures_of(series.points);
  return {.block = block,
          .ours = speeds(time),
          .copy = speeds(bases_of(series.points)),
          .ratio = 1 / median_ratio(series.points),
          .microseconds = time.middle / 1e3};
}

std::string cores_text(const KvPart& part) {
  return fmt::format("{} {}", part.cores, part.cores == 1 ? "core" : "cores");
}

std::string describe(const KvPart& part) {
  const std::string what = part.few
                               ? fmt::format("{} blocks of K and of V, {}", kFewBlocks,
                                             part.same ? "the same each time" : "others each time")
                               : fmt::format("{} scattered over {}", size_text(part.bytes), size_text(4 * part.bytes));
  return fmt::format("{}, {} of each, {}",
                     part.both_ways ? "both PEs send at once" : "one PE sends, the other receives", cores_text(part),
                     what);
}

void print(const KvPart& part, const std::vector<Row>& rows) {
  std::printf("\n%s; load of the machine %.1f\n", describe(part).c_str(), load_of_machine());
  const Table table("-10 8 8 10 | 8 8 6 | 8 6 | 8 6");
  table.print(
      {"GB/s", "best", "median", "median us", "memcpy", "median", "ratio", "UCX warm", "times", "Open MPI", "times"});
  for (const Row& row : rows) {
    const auto times = [&](const std::optional<double>& theirs) {
      return number(theirs ? std::optional(row.ours.middle / *theirs) : std::nullopt, 2);
    };
    table.print({size_text(row.block), number(row.ours.best, 1), number(row.ours.middle, 1),
                 number(row.microseconds, 1), number(row.copy.best, 1), number(row.copy.middle, 1),
                 number(row.ratio, 2), number(row.ucx, 1), times(row.ucx), number(row.openmpi, 1), times(row.openmpi)});
  }
}

/// Draws speeds over block sizes, for many blocks in one direction.
void draw(const KvPart& part, const std::vector<Row>& rows, chart::Plot& plot) {
  if (part.both_ways || part.few) {
    return;
  }
  for (const Row& row : rows) {
    const auto block = static_cast<double>(row.block);
    add_point(plot, fmt::format("kv_shuffle, 2 PEs of {}", cores_text(part)), block, row.ours.middle);
    add_point(plot, fmt::format("memcpy, {} threads", std::min(2 * part.cores, own_processors())), block,
              row.copy.middle);
    add_point(plot, "UCX put, a block in the cache", block, row.ucx, /*dashed=*/true);
    add_point(plot, "Open MPI, puts of the blocks", block, row.openmpi, /*dashed=*/true);
  }
}

/// GB/s by the size of a block.
std::map<std::size_t, double> measure_ucx_alone(std::size_t mebibytes) {
  const CpuPair cpus = first_two_cpus();
  const auto measure_one = [&](std::size_t size, std::size_t all) {
    const int count = static_cast<int>(std::clamp<std::size_t>(all / size, 10, 200'000));
    return speed(size, measure_ucx("ucp_put_bw", size, count, cpus));
  };
  std::map<std::size_t, double> speeds;
  for (const std::size_t block : kKvBlocks) {
    speeds[block] = measure_one(block, std::size_t{1} << 30);
  }
  const std::size_t all = mebibytes * kMebibyte;
  std::printf("UCX, one put of %s again and again: %.1f GB/s\n", size_text(all).c_str(), measure_one(all, 20 * all));
  return speeds;
}

std::vector<Row> measure(const Settings& settings, const KvPart& part, OpenMpi& openmpi,
                         const std::map<std::size_t, double>& ucx) {
  // K and V, each of twice the size that is sent, and some more.
  Job job{.pes = 2,
          .arguments = {"kv", std::to_string(settings.repeats)},
          .environment = {"SHMEM_SYMMETRIC_SIZE=" + std::to_string(5 * part.bytes + 64 * kMebibyte)}};
  std::ranges::copy(part.words(), std::back_inserter(job.arguments));
  std::vector<Row> rows;
  for (const Series& series : run_ours(job)) {
    rows.push_back(row_of(part, series));
    const auto found = ucx.find(rows.back().block);
    if (found != ucx.end() && part.cores == 1 && !part.both_ways) {
      rows.back().ucx = found->second;
    }
  }
  std::ranges::sort(rows, {}, &Row::block);
  if (part.cores > 1) {
    return rows;  // a process of Open MPI has one thread
  }
  for (const Series& series : openmpi.run(job)) {
    const Row theirs = row_of(part, series);
    std::ranges::find(rows, theirs.block, &Row::block)->openmpi = theirs.ours.middle;
  }
  return rows;
}

int run(const Settings& settings) {
  std::printf(
      "GB/s (10^9 bytes per second), best and median of %d repeats. The time of a shuffle begins when both PEs call\n"
      "it and ends when all blocks have arrived; it includes waking other threads. memcpy: the same blocks to the\n"
      "same memory of the other PE right before, by as many threads as copy in a shuffle (receivers' cores copy\n"
      "too), all awake; ratio: libshmem to memcpy, median. UCX warm: the best average of ucp_put_bw, which puts one\n"
      "block of that size to one place repeatedly, so that both are in the processor's cache, as are blocks that\n"
      "stay the same.\n"
      "Open MPI: puts of the same blocks and a quiet (over UCX), by one thread of each sender, median.\n",
      settings.repeats);
  OpenMpi openmpi(OpenMpiWorker::Library::kShmem, {"kv_blocks"}, !settings.alone);
  std::map<std::size_t, double> ucx;
  if (!settings.alone && has_ucx()) {
    ucx = measure_ucx_alone(settings.mebibytes);
  }
  auto plot = logarithmic_plot("Blocks of KV caches from PE to PE, median", "bytes of a block", "GB/s");
  for (const int cores : settings.cores) {
    for (KvPart part : kParts) {
      if (part.both_ways && 2 * cores > own_processors()) {
        std::printf("\nBoth ways with %d cores of each PE is skipped: there are %d processors.\n", cores,
                    own_processors());
        continue;
      }
      part.cores = cores;
      part.bytes = settings.mebibytes * kMebibyte;
      part.path = settings.path;
      const auto rows = measure(settings, part, openmpi, ucx);
      print(part, rows);
      draw(part, rows, plot);
    }
  }
  write_svg(settings.svg, {plot});
  return openmpi.good() ? 0 : 1;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Settings settings;
  return bench::run_program(
      {.name = "bench_kv",
       .description = "Measures kv_shuffle, compared with memcpy, and with UCX and Open MPI if they are installed.",
       .options =
           {{"--repeats", &settings.repeats, "measurements of each", {{1, 1000}}},
            {"--cores", &settings.cores, "threads of a PE that copy", {{1, 256}}},
            {"--mebibytes", &settings.mebibytes, "data that a PE sends in one shuffle of many blocks", {{2, 4096}}},
            {"--path", &settings.path, "how the cores copy", {}, {"auto", "direct", "scratch"}},
            {"--svg", &settings.svg, "write a chart of the speeds to this file"},
            {"--alone", &settings.alone, "libshmem and memcpy only"}},
       .run = [&] { return bench::run(settings); },
       .needs_two_processors = true},
      argc, argv);
}
