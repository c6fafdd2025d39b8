// SPDX-License-Identifier: Apache-2.0
// kv_shuffle of blocks of many sizes in one run, compared with memcpy of the same blocks by as many threads, and with
// UCX and Open MPI if they are installed.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <optional>

#include "bench/jobs.hpp"
#include "bench/kv_cache.hpp"
#include "bench/measure.hpp"
#include "bench/options.hpp"
#include "bench/ucx.hpp"
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

Speeds speeds_of(std::size_t bytes, const Spread& time) {
  return {speed(bytes, time.least), speed(bytes, time.middle)};
}

Row row_of(const KvPart& part, std::size_t block, const Series& series) {
  // If both PEs send, the bytes of both.
  const std::size_t bytes = bytes_moved(part, block) * (part.both_ways ? 2 : 1);
  const Spread time = figures_of(series.points);
  const double ratio = 1 / median_ratio(series.points);
  return {block, speeds_of(bytes, time), speeds_of(bytes, bases_of(series.points)), ratio, time.middle / 1e3};
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

/// The other library's figure and libshmem's speed relative to it; dashes if it was not measured.
void print_comparison(const Row& row, const std::optional<double>& theirs) {
  if (theirs) {
    std::printf(" | %8.1f %6.2f", *theirs, row.ours.middle / *theirs);
  } else {
    std::printf(" | %8s %6s", "-", "-");
  }
}

void print(const KvPart& part, const std::vector<Row>& rows) {
  std::printf("\n%s; load of the machine %.1f\n", describe(part).c_str(), load_of_machine());
  std::printf("%-10s %8s %8s %10s | %8s %8s %6s | %8s %6s | %8s %6s\n", "GB/s", "best", "median", "median us", "memcpy",
              "median", "ratio", "UCX warm", "times", "Open MPI", "times");
  for (const Row& row : rows) {
    std::printf("%-10s %8.1f %8.1f %10.1f | %8.1f %8.1f %6.2f", size_text(row.block).c_str(), row.ours.best,
                row.ours.middle, row.microseconds, row.copy.best, row.copy.middle, row.ratio);
    print_comparison(row, row.ucx);
    print_comparison(row, row.openmpi);
    std::printf("\n");
  }
  std::fflush(stdout);
}

/// Draws speeds over block sizes, for many blocks in one direction.
void draw(const KvPart& part, const std::vector<Row>& rows, Picture& picture) {
  if (part.both_ways || part.few) {
    return;
  }
  const auto add = [&](const std::string& name, const auto& speed_of, bool dashed) {
    for (const Row& row : rows) {
      if (const std::optional<double> speed = speed_of(row)) {
        picture.add(name, static_cast<double>(row.block), *speed, dashed);
      }
    }
  };
  add(
      fmt::format("kv_shuffle, 2 PEs of {}", cores_text(part)), [](const Row& row) { return row.ours.middle; }, false);
  add(
      fmt::format("memcpy, {} threads", std::min(2 * part.cores, own_processors())),
      [](const Row& row) { return row.copy.middle; }, false);
  add(
      "UCX put, a block in the cache", [](const Row& row) { return row.ucx; }, true);
  add(
      "Open MPI, puts of the blocks", [](const Row& row) { return row.openmpi; }, true);
}

class Bench {
 public:
  explicit Bench(const Settings& settings) : settings_(settings) {
    if (settings.alone) {
      return;
    }
    openmpi_ = openmpi_program(folder_, "shmemc++", "BENCH_OPENMPI_SHMEM", "kv_worker");
    if (has_ucx()) {
      measure_ucx_alone();
    }
  }

  bool run() {
    Picture picture;
    for (const int cores : settings_.cores) {
      for (KvPart part : kParts) {
        if (part.both_ways && 2 * cores > own_processors()) {
          std::printf("\nBoth ways with %d cores of each PE is skipped: there are %d processors.\n", cores,
                      own_processors());
          continue;
        }
        part.cores = cores;
        part.bytes = settings_.mebibytes * kMebibyte;
        part.path = settings_.path;
        const auto rows = measure(part);
        print(part, rows);
        draw(part, rows, picture);
      }
    }
    if (!settings_.svg.empty()) {
      picture.write(settings_.svg, "Blocks of KV caches from PE to PE, median", "bytes of a block", "GB/s");
    }
    return good_;
  }

 private:
  std::vector<Row> measure(const KvPart& part) {
    const std::vector<std::string> arguments{std::to_string(settings_.repeats), text_of(part)};
    // K and V, each of twice the size that is sent, and some more.
    const std::vector<std::string> heap{"SHMEM_SYMMETRIC_SIZE=" + std::to_string(5 * part.bytes + 64 * kMebibyte)};
    std::map<std::size_t, Row> rows;
    for (const Series& series : run_ours(folder_, "kv_worker", 2, arguments, heap)) {
      const std::size_t block = block_of(series);
      Row row = row_of(part, block, series);
      if (const auto ucx = ucx_.find(block); ucx != ucx_.end() && part.cores == 1 && !part.both_ways) {
        row.ucx = ucx->second;
      }
      rows.emplace(block, row);
    }
    // A process of Open MPI has one thread.
    if (openmpi_ && part.cores == 1) {
      try {
        for (const Series& series : openmpi_->run(2, arguments, heap)) {
          const std::size_t block = block_of(series);
          rows.at(block).openmpi = row_of(part, block, series).ours.middle;
        }
      } catch (const std::exception& error) {
        std::printf("Open MPI: %s\n", error.what());
        good_ = false;
      }
    }
    std::vector<Row> sorted;
    sorted.reserve(rows.size());
    for (const auto& [block, row] : rows) {
      sorted.push_back(row);
    }
    return sorted;
  }

  static std::size_t block_of(const Series& series) {
    for (const std::size_t block : kKvBlocks) {
      if (size_text(block) == series.name) {
        return block;
      }
    }
    throw std::runtime_error("a worker measured blocks of " + series.name);
  }

  void measure_ucx_alone() {
    const CpuPair cpus = first_two_cpus();
    const auto measure_one = [&](std::size_t size, std::size_t all) {
      const int count = static_cast<int>(std::clamp<std::size_t>(all / size, 10, 200'000));
      return speed(size, measure_ucx("ucp_put_bw", size, count, cpus));
    };
    for (const std::size_t block : kKvBlocks) {
      ucx_[block] = measure_one(block, std::size_t{1} << 30);
    }
    std::printf("UCX, one put of %s again and again: %.1f GB/s\n", size_text(settings_.mebibytes * kMebibyte).c_str(),
                measure_one(settings_.mebibytes * kMebibyte, 20 * settings_.mebibytes * kMebibyte));
  }

  const Settings& settings_;
  base::TempFolder folder_;
  std::unique_ptr<OpenMpiProgram> openmpi_;
  std::map<std::size_t, double> ucx_;  // GB/s by size
  bool good_ = true;
};

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
  return Bench(settings).run() ? 0 : 1;
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
