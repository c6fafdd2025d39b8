// SPDX-License-Identifier: Apache-2.0
// shmem_perf: latency and bandwidth of the calls of a job, on one node or between nodes. bench_rma measures the same
// calls on one node and compares them with other libraries.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/number.hpp"
#include "bench/library.hpp"
#include "bench/options.hpp"

namespace {

using bench::alone;
using bench::Figure;
using bench::time_each;

constexpr std::size_t kMostBytes = std::size_t{1} << 30;

struct Settings {
  std::vector<std::size_t> sizes{8, 64, 512, 4096, 32768, 262144, 1048576, 4194304};
  int repeats = 9;
  double milliseconds = 5;  // of one measurement
  bool json = false;
  std::vector<std::string> tests{};  // empty: all
};

/// One measurement: nanoseconds of a call.
struct Row {
  std::string test;
  std::size_t bytes;
  double least, median;
  bool has_rate;  // bytes / time means something
};

bool is_first() {
  return shmem_my_pe() == 0;
}

/// Only PE 0 acts: many calls before one quiet.
template <typename Action>
Figure many(Action action) {
  return [action](int count) {
    if (!is_first()) {
      return 0.0;
    }
    const bench::Stopwatch watch;
    time_each(count, action);
    shmem_quiet();
    return watch.nanoseconds() / count;
  };
}

/// All PEs act; the time of PE 0.
template <typename Action>
Figure all(Action action) {
  return [action](int count) { return time_each(count, action); };
}

/// What the tests share: symmetric memory, and the two PEs that one-sided calls go between.
class Bench {
 public:
  explicit Bench(const Settings& settings)
      : settings_(settings),
        most_(*std::ranges::max_element(settings.sizes) * static_cast<std::size_t>(shmem_n_pes())) {
    if (to_ == nullptr || from_ == nullptr || signal_ == nullptr || agreed_ == nullptr) {
      if (is_first()) {
        std::fprintf(stderr, "shmem_perf: no symmetric memory for 2 times %zu bytes; set SHMEM_SYMMETRIC_SIZE\n",
                     most_);
      }
      shmem_global_exit(1);
    }
    std::memset(to_, 1, most_);
    std::memset(from_, 2, most_);
  }

  std::vector<Row> run() {
    one_sided();
    together();
    return rows_;
  }

 private:
  /// The number of calls that take the time of one measurement: the same on all PEs, which PE 0 chooses.
  int calls_for(const Figure& figure) {
    double each = figure(1);
    int count = 1;
    // A first call connects, and so takes longer than others.
    for (int round = 0; round < 2; ++round) {
      agreed_[0] = std::clamp(settings_.milliseconds * 1e6 / std::max(each, 1.0), 1.0, 1e6);
      shmem_barrier_all();
      shmem_double_broadcast(SHMEM_TEAM_WORLD, agreed_ + 1, agreed_, 1, 0);
      count = static_cast<int>(agreed_[1]);
      each = figure(count);
    }
    return count;
  }

  void add(const std::string& test, std::size_t bytes, bool has_rate, const Figure& figure) {
    if (!settings_.tests.empty() && std::ranges::find(settings_.tests, test) == settings_.tests.end()) {
      return;
    }
    const auto in_step = [&](int count) {
      shmem_barrier_all();
      return figure(count);
    };
    const int count = calls_for(in_step);
    std::vector<double> times(static_cast<std::size_t>(settings_.repeats));
    std::ranges::generate(times, [&] { return in_step(count); });
    std::sort(times.begin(), times.end());
    rows_.push_back({test, bytes, times.front(), times[times.size() / 2], has_rate});
  }

  /// A row for each size.
  template <typename FigureOf>
  void add_sizes(const std::string& test, FigureOf figure_of, std::size_t unit = 1) {
    for (const std::size_t size : settings_.sizes) {
      add(test, size / unit * unit, true, figure_of(size));
    }
  }

  void one_sided() {
    auto* words = reinterpret_cast<std::uint64_t*>(to_);
    const int peer = peer_;
    add_sizes("put", [this](std::size_t size) {
      return alone([this, size] {
        shmem_putmem(to_, from_, size, peer_);
        shmem_quiet();
      });
    });
    add_sizes("put_nbi",
              [this](std::size_t size) { return many([this, size] { shmem_putmem_nbi(to_, from_, size, peer_); }); });
    add_sizes("get",
              [this](std::size_t size) { return alone([this, size] { shmem_getmem(to_, from_, size, peer_); }); });
    add_sizes("put_signal",
              [this](std::size_t size) { return [this, size](int count) { return ping_pong(size, count); }; });
    add("fetch_add", 8, false, alone([words, peer] { shmem_uint64_atomic_fetch_add(words, 1, peer); }));
    add("compare_swap", 8, false, alone([words, peer] { shmem_uint64_atomic_compare_swap(words, 0, 1, peer); }));
    add("add", 8, false, many([words, peer] { shmem_uint64_atomic_add(words, 1, peer); }));
  }

  /// Half of a round trip of puts with a signal, for which the other side waits.
  double ping_pong(std::size_t size, int count) {
    const bool is_last = shmem_my_pe() == peer_;
    const int other = is_first() ? peer_ : 0;
    const auto send = [&] { shmem_putmem_signal(to_, from_, size, signal_, 1, SHMEM_SIGNAL_ADD, other); };
    if (is_first() && is_last) {  // the only PE
      return time_each(count, send);
    }
    if (!is_first() && !is_last) {
      return 0;
    }
    return time_each(count,
                     [&] {
                       if (is_first()) {
                         send();
                       }
                       shmem_signal_wait_until(signal_, SHMEM_CMP_GE, ++turn_);
                       if (is_last) {
                         send();
                       }
                     }) /
           2;
  }

  void together() {
    add("barrier_all", 0, false, all([] { shmem_barrier_all(); }));
    add("sync_all", 0, false, all([] { shmem_sync_all(); }));
    add_sizes("broadcast", [this](std::size_t size) {
      return all([this, size] { shmem_broadcastmem(SHMEM_TEAM_WORLD, to_, from_, size, 0); });
    });
    const auto sum = [this](std::size_t size) {
      return all([to = reinterpret_cast<float*>(to_), from = reinterpret_cast<float*>(from_), size] {
        shmem_float_sum_reduce(SHMEM_TEAM_WORLD, to, from, size / sizeof(float));
      });
    };
    add_sizes("sum_reduce", sum, sizeof(float));
    add_sizes("fcollect", [this](std::size_t size) {
      return all([this, size] { shmem_fcollectmem(SHMEM_TEAM_WORLD, to_, from_, size); });
    });
    add_sizes("alltoall", [this](std::size_t size) {
      return all([this, size] { shmem_alltoallmem(SHMEM_TEAM_WORLD, to_, from_, size); });
    });
  }

  const Settings& settings_;
  std::size_t most_;
  int peer_ = shmem_n_pes() - 1;
  char* to_ = static_cast<char*>(shmem_align(4096, most_));
  char* from_ = static_cast<char*>(shmem_align(4096, most_));
  std::uint64_t* signal_ = static_cast<std::uint64_t*>(shmem_calloc(2, sizeof(std::uint64_t)));
  double* agreed_ = static_cast<double*>(shmem_calloc(2, sizeof(double)));
  std::uint64_t turn_ = 0;  // signals that ping_pong() has waited for
  std::vector<Row> rows_;
};

/// Prints to standard output.
template <typename... Values>
void say(fmt::format_string<const Values&...> format, const Values&... values) {
  std::fputs(fmt::format(format, values...).c_str(), stdout);
}

void print_json(const std::vector<Row>& rows) {
  say("[");
  for (const Row& row : rows) {
    say("{}\n  {{\"call\": \"{}\", \"bytes\": {}, \"least_ns\": {:.1f}, \"median_ns\": {:.1f}}}",
        &row == rows.data() ? "" : ",", row.test, row.bytes, row.least, row.median);
  }
  say("\n]\n");
}

void print_table(const std::vector<Row>& rows) {
  const int last = shmem_n_pes() - 1;
  const bool near = shmem_team_translate_pe(SHMEM_TEAM_WORLD, last, SHMEM_TEAM_SHARED) >= 0;
  say("{} PEs; puts, gets and atomics by PE 0 to PE {}, which is {} node; put_signal: half of a round trip\n", last + 1,
      last, near ? "on the same" : "on another");
  say("{:<14} {:>10} {:>12} {:>12} {:>12}\n", "call", "bytes", "least us", "median us", "MB/s");
  for (const Row& row : rows) {
    say("{:<14} {:>10} {:>12.3f} {:>12.3f} {:>12}\n", row.test, row.bytes, row.least / 1e3, row.median / 1e3,
        row.has_rate && row.median > 0 ? fmt::format("{:.1f}", static_cast<double>(row.bytes) * 1e3 / row.median)
                                       : "-");
  }
}

int run(const Settings& settings) {
  shmem_init();
  const std::vector<Row> rows = Bench(settings).run();
  if (is_first()) {
    settings.json ? print_json(rows) : print_table(rows);
    std::fflush(stdout);
  }
  shmem_finalize();
  return 0;
}

/// What is wrong with a size, or "".
std::string wrong_size(const std::string& text) {
  return base::number(text, std::size_t{1}, kMostBytes) ? "" : text + " is not a size, 1 to 1073741824";
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  return bench::run_program(
      {.name = "shmem_perf",
       .description =
           "Measures calls of the PEs of a job: between PE 0 and the last PE, and of all PEs together. Start "
           "it by oshrun -n N, or by another launcher.",
       .options = {{"CALL",
                    &settings.tests,
                    "put, put_nbi, get, put_signal, fetch_add, compare_swap, add, barrier_all, sync_all, broadcast, "
                    "sum_reduce, fcollect, alltoall; default all",
                    {},
                    {"put", "put_nbi", "get", "put_signal", "fetch_add", "compare_swap", "add", "barrier_all",
                     "sync_all", "broadcast", "sum_reduce", "fcollect", "alltoall"}},
                   {"--sizes", &settings.sizes, "bytes of a call", {}, {}, wrong_size},
                   {"--repeats",
                    &settings.repeats,
                    "measurements of each, of which the least and the median are printed",
                    {{1, 10'000}}},
                   {"--milliseconds", &settings.milliseconds, "the time of a measurement", {{0.001, 1e5}}},
                   {"--json", &settings.json, "print JSON"}},
       .run = [&] { return run(settings); },
       .version = SHMEM_PERF_VERSION},
      argc, argv);
}
