// SPDX-License-Identifier: Apache-2.0
// shmem_perf: latency and bandwidth of the calls of a job, on one node or between nodes. bench_rma measures the same
// calls on one node and compares them with other libraries.
#include <fmt/format.h>
#include <getopt.h>
#include <shmem.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/number.hpp"
#include "bench/measure.hpp"

namespace {

using bench::time_each;

constexpr std::size_t kMostBytes = std::size_t{1} << 30;

struct Settings {
  std::vector<std::size_t> sizes{8, 64, 512, 4096, 32768, 262144, 1048576, 4194304};
  int repeats = 9;
  double milliseconds = 5;  // of one measurement
  bool json = false;
  std::vector<std::string> tests;  // empty: all
};

/// One measurement: nanoseconds of a call.
struct Row {
  std::string test;
  std::size_t bytes;
  double least, median;
  bool has_rate;  // bytes / time means something
};

/// What the tests share: symmetric memory, and the two PEs that one-sided calls go between.
class Bench {
 public:
  explicit Bench(const Settings& settings)
      : settings_(settings),
        most_(*std::max_element(settings.sizes.begin(), settings.sizes.end())),
        peer_(shmem_n_pes() - 1),
        to_(static_cast<char*>(shmem_align(4096, most_ * pes()))),
        from_(static_cast<char*>(shmem_align(4096, most_ * pes()))),
        signal_(static_cast<std::uint64_t*>(shmem_calloc(2, sizeof(std::uint64_t)))),
        agreed_(static_cast<double*>(shmem_calloc(2, sizeof(double)))) {
    if (to_ == nullptr || from_ == nullptr || signal_ == nullptr || agreed_ == nullptr) {
      if (is_first()) {
        std::fprintf(stderr, "shmem_perf: no symmetric memory for 2 times %zu bytes; set SHMEM_SYMMETRIC_SIZE\n",
                     most_ * pes());
      }
      shmem_global_exit(1);
    }
    std::memset(to_, 1, most_ * pes());
    std::memset(from_, 2, most_ * pes());
  }

  static bool is_first() { return shmem_my_pe() == 0; }

  std::vector<Row> run() {
    one_sided();
    together();
    return rows_;
  }

 private:
  static std::size_t pes() { return static_cast<std::size_t>(shmem_n_pes()); }
  [[nodiscard]] bool is_wanted(std::string_view test) const {
    return settings_.tests.empty() ||
           std::any_of(settings_.tests.begin(), settings_.tests.end(), [test](const auto& one) { return one == test; });
  }

  /// The number of calls that take the time of one measurement: the same on all PEs, which PE 0 chooses.
  template <typename Measure>
  int calls_for(Measure measure) {
    double each = measure(1);
    int count = 1;
    // A first call connects, and so takes longer than others.
    for (int round = 0; round < 2; ++round) {
      agreed_[0] = std::clamp(settings_.milliseconds * 1e6 / std::max(each, 1.0), 1.0, 1e6);
      shmem_barrier_all();
      shmem_double_broadcast(SHMEM_TEAM_WORLD, agreed_ + 1, agreed_, 1, 0);
      count = static_cast<int>(agreed_[1]);
      each = measure(count);
    }
    return count;
  }

  /// `measure`(n) makes n calls and returns the nanoseconds of each; all PEs call it, and that of PE 0 counts.
  template <typename Measure>
  void add(const std::string& test, std::size_t bytes, bool has_rate, Measure measure) {
    if (!is_wanted(test)) {
      return;
    }
    const auto in_step = [&](int count) {
      shmem_barrier_all();
      return measure(count);
    };
    const int count = calls_for(in_step);
    std::vector<double> times;
    for (int i = 0; i < settings_.repeats; ++i) {
      times.push_back(in_step(count));
    }
    std::sort(times.begin(), times.end());
    rows_.push_back({test, bytes, times.front(), times[times.size() / 2], has_rate});
  }

  /// Only PE 0 acts; the others wait in the next barrier.
  template <typename Action>
  static auto alone(Action action) {
    return [action](int count) { return is_first() ? time_each(count, action) : 0.0; };
  }

  void one_sided() {
    const int peer = peer_;
    auto* words = reinterpret_cast<std::uint64_t*>(to_);
    for (const std::size_t size : settings_.sizes) {
      add("put", size, true, alone([this, size, peer] {
            shmem_putmem(to_, from_, size, peer);
            shmem_quiet();
          }));
    }
    for (const std::size_t size : settings_.sizes) {
      // Many at once, as programs that overlap them do.
      add("put_nbi", size, true, [this, size, peer](int count) {
        return is_first() ? time_each(1,
                                      [&] {
                                        for (int i = 0; i < count; ++i) {
                                          shmem_putmem_nbi(to_, from_, size, peer);
                                        }
                                        shmem_quiet();
                                      }) /
                                count
                          : 0.0;
      });
    }
    for (const std::size_t size : settings_.sizes) {
      add("get", size, true, alone([this, size, peer] { shmem_getmem(to_, from_, size, peer); }));
    }
    for (const std::size_t size : settings_.sizes) {
      add("put_signal", size, true, [this, size](int count) { return ping_pong(size, count); });
    }
    add("fetch_add", 8, false, alone([words, peer] { shmem_uint64_atomic_fetch_add(words, 1, peer); }));
    add("compare_swap", 8, false, alone([words, peer] { shmem_uint64_atomic_compare_swap(words, 0, 1, peer); }));
    add("add", 8, false, [words, peer](int count) {
      return is_first() ? time_each(1,
                                    [&] {
                                      for (int i = 0; i < count; ++i) {
                                        shmem_uint64_atomic_add(words, 1, peer);
                                      }
                                      shmem_quiet();
                                    }) /
                              count
                        : 0.0;
    });
  }

  /// Half of a round trip of puts with a signal, for which the other side waits.
  double ping_pong(std::size_t size, int count) {
    const bool is_last = shmem_my_pe() == peer_;
    if (is_first() && is_last) {  // the only PE
      return time_each(count, [&] { shmem_putmem_signal(to_, from_, size, signal_, 1, SHMEM_SIGNAL_ADD, 0); });
    }
    if (!is_first() && !is_last) {
      return 0;
    }
    const int other = is_first() ? peer_ : 0;
    return time_each(count,
                     [&] {
                       if (is_first()) {
                         shmem_putmem_signal(to_, from_, size, signal_, 1, SHMEM_SIGNAL_ADD, other);
                       }
                       shmem_signal_wait_until(signal_, SHMEM_CMP_GE, ++turn_);
                       if (is_last) {
                         shmem_putmem_signal(to_, from_, size, signal_, 1, SHMEM_SIGNAL_ADD, other);
                       }
                     }) /
           2;
  }

  /// Collectives: the time of PE 0.
  void together() {
    const auto all = [](auto action) { return [action](int count) { return time_each(count, action); }; };
    add("barrier_all", 0, false, all([] { shmem_barrier_all(); }));
    add("sync_all", 0, false, all([] { shmem_sync_all(); }));
    for (const std::size_t size : settings_.sizes) {
      add("broadcast", size, true, all([this, size] { shmem_broadcastmem(SHMEM_TEAM_WORLD, to_, from_, size, 0); }));
    }
    for (const std::size_t size : settings_.sizes) {
      add("sum_reduce", size / sizeof(float) * sizeof(float), true, all([this, size] {
            shmem_float_sum_reduce(SHMEM_TEAM_WORLD, reinterpret_cast<float*>(to_), reinterpret_cast<float*>(from_),
                                   size / sizeof(float));
          }));
    }
    for (const std::size_t size : settings_.sizes) {
      add("fcollect", size, true, all([this, size] { shmem_fcollectmem(SHMEM_TEAM_WORLD, to_, from_, size); }));
    }
    for (const std::size_t size : settings_.sizes) {
      add("alltoall", size, true, all([this, size] { shmem_alltoallmem(SHMEM_TEAM_WORLD, to_, from_, size); }));
    }
  }

  const Settings& settings_;
  std::size_t most_;
  int peer_;
  char* to_;
  char* from_;
  std::uint64_t* signal_;
  double* agreed_;
  std::uint64_t turn_ = 0;  // signals that ping_pong() has waited for
  std::vector<Row> rows_;
};

constexpr std::string_view kTests[] = {"put",          "put_nbi",  "get",         "put_signal", "fetch_add",
                                       "compare_swap", "add",      "barrier_all", "sync_all",   "broadcast",
                                       "sum_reduce",   "fcollect", "alltoall"};

/// Prints to standard output.
template <typename... Values>
void say(fmt::format_string<const Values&...> format, const Values&... values) {
  std::fputs(fmt::format(format, values...).c_str(), stdout);
}

void print(const std::vector<Row>& rows, const Settings& settings) {
  if (settings.json) {
    say("[");
    for (const Row& row : rows) {
      say("{}\n  {{\"call\": \"{}\", \"bytes\": {}, \"least_ns\": {:.1f}, \"median_ns\": {:.1f}}}",
          &row == rows.data() ? "" : ",", row.test, row.bytes, row.least, row.median);
    }
    say("\n]\n");
    return;
  }
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

constexpr const char* kHelp =
    "Usage: oshrun -n N shmem_perf [OPTIONS] [CALL]...\n"
    "Measures calls of the PEs of a job: between PE 0 and the last PE, and of all PEs together.\n\n"
    "CALL: put, put_nbi, get, put_signal, fetch_add, compare_swap, add, barrier_all, sync_all, broadcast, sum_reduce,\n"
    "fcollect, alltoall; default all\n\n"
    "Options:\n"
    "  --sizes BYTES,...      Sizes of a call; default 8 B to 4 MiB\n"
    "  --repeats N            Measurements of each, of which the least and the median are printed; default 9\n"
    "  --milliseconds TIME    The time of a measurement; default 5\n"
    "  --json                 Print JSON\n"
    "  --help                 Print this help\n"
    "  --version              Print the version\n";

template <typename Number>
bool read_number(std::string_view text, Number least, Number most, Number& number) {
  const auto read = base::number(text, least, most);
  number = read.value_or(number);
  return read.has_value();
}

bool read_sizes(std::string_view text, std::vector<std::size_t>& sizes) {
  sizes.clear();
  for (;;) {
    const auto comma = std::min(text.find(','), text.size());
    std::size_t size = 0;
    if (!read_number(text.substr(0, comma), std::size_t{1}, kMostBytes, size)) {
      return false;
    }
    sizes.push_back(size);
    if (comma == text.size()) {
      return true;
    }
    text.remove_prefix(comma + 1);
  }
}

/// The exit status if there is nothing to measure; -1: go on.
int read_command_line(int argc, char** argv, Settings& settings) {
  enum Choice { kSizes = 1, kRepeats, kMilliseconds, kJson, kHelpChoice, kVersion };
  const option options[] = {{"sizes", required_argument, nullptr, kSizes},
                            {"repeats", required_argument, nullptr, kRepeats},
                            {"milliseconds", required_argument, nullptr, kMilliseconds},
                            {"json", no_argument, nullptr, kJson},
                            {"help", no_argument, nullptr, kHelpChoice},
                            {"version", no_argument, nullptr, kVersion},
                            {}};
  const auto wrong = [](std::string_view what, std::string_view value) {
    std::fputs(fmt::format("shmem_perf: {} {}\nTry: shmem_perf --help\n", value, what).c_str(), stderr);
    return 2;
  };
  for (int choice = 0; (choice = ::getopt_long(argc, argv, "", options, nullptr)) != -1;) {
    if (choice == kSizes && !read_sizes(optarg, settings.sizes)) {
      return wrong("is not a list of sizes, 1 to 1073741824", optarg);
    }
    if (choice == kRepeats && !read_number(optarg, 1, 10'000, settings.repeats)) {
      return wrong("is not a number of measurements, 1 to 10000", optarg);
    }
    if (choice == kMilliseconds && !read_number(optarg, 0.001, 1e5, settings.milliseconds)) {
      return wrong("is not a number of milliseconds, 0.001 to 100000", optarg);
    }
    settings.json = settings.json || choice == kJson;
    if (choice == kHelpChoice || choice == kVersion) {
      say("{}", choice == kHelpChoice ? kHelp : fmt::format("shmem_perf: libshmem {}\n", SHMEM_PERF_VERSION));
      return 0;
    }
    if (choice == '?') {
      return 2;
    }
  }
  settings.tests.assign(argv + optind, argv + argc);
  for (const std::string& test : settings.tests) {
    if (std::find(std::begin(kTests), std::end(kTests), test) == std::end(kTests)) {
      return wrong("is not a call that can be measured", test);
    }
  }
  return -1;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  if (const int status = read_command_line(argc, argv, settings); status >= 0) {
    return status;
  }
  shmem_init();
  const std::vector<Row> rows = Bench(settings).run();
  if (shmem_my_pe() == 0) {
    print(rows, settings);
    std::fflush(stdout);
  }
  shmem_finalize();
  return 0;
}
