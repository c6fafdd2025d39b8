// SPDX-License-Identifier: Apache-2.0
// The cost of losing the device: the time from the loss to the end of the barrier that is open then (a killed device is
// lost when its process has ended), the longest barrier from the loss until the device is used again, and the time from
// the return of a device until it is used. On one node, and on two nodes, which are environments on this machine.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/fake_device.hpp"
#include "bench/jobs.hpp"
#include "bench/options.hpp"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr base::Seconds kLimit{600};
constexpr std::chrono::milliseconds kPoll{2};
/// By then a device that is stopped has been noticed, or has returned too early for that.
constexpr std::chrono::seconds kNoticed{2};

struct Settings {
  int repeats = 5;
  int pes = 4;
  double away = 3;
  bool check = false;
};

enum class Loss { kKilled, kStopped };

/// What --check allows, in seconds, for the least of the repeats, on a machine with a processor for each process that
/// wants to run. With more load it allows more.
constexpr double kOpenIfKilled = 0.1;
constexpr double kOpenIfStopped = 1;
constexpr double kInUseAgain = 2;
/// --check leaves the device away longer than it may take to notice, but not longer than this.
constexpr double kLongestAway = 10;

long long now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

double seconds(long long nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e9;
}

/// The output of a job: when it began and stopped using the device, and its long barriers.
class Log {
 public:
  explicit Log(const std::string& output) {
    std::istringstream lines(output.substr(0, output.rfind('\n') + 1));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      Entry entry;
      if (words >> entry.what >> entry.when) {
        words >> entry.length;
        entries_.push_back(entry);
      }
    }
  }
  /// The first time after `when` at which the PEs began to use the device.
  [[nodiscard]] std::optional<long long> in_use_after(long long when) const {
    const auto found = std::ranges::find_if(
        entries_, [when](const Entry& entry) { return entry.what == "device" && entry.when > when; });
    return found == entries_.end() ? std::nullopt : std::optional(found->when);
  }
  /// Whether the device is in use at the end.
  [[nodiscard]] bool in_use() const {
    const auto last = std::find_if(entries_.rbegin(), entries_.rend(), [](const Entry& entry) {
      return entry.what == "device" || entry.what == "software";
    });
    return last != entries_.rend() && last->what == "device";
  }
  /// The time from `loss` to the end of the last barrier that was open then.
  [[nodiscard]] long long open_after(long long loss) const {
    return most([&](const Entry& entry) {
      return entry.when > loss && entry.when - entry.length <= loss ? entry.when - loss : 0;
    });
  }
  /// The longest barrier that ended between the two times.
  [[nodiscard]] long long longest(long long from, long long to) const {
    return most([&](const Entry& entry) { return entry.when >= from && entry.when < to ? entry.length : 0; });
  }

 private:
  struct Entry {
    std::string what;
    long long when = 0, length = 0;
  };

  /// The largest value of a long barrier; 0 without long barriers.
  template <typename Value>
  [[nodiscard]] long long most(Value value_of) const {
    long long most = 0;
    for (const Entry& entry : entries_) {
      most = entry.what == "long" ? std::max(most, value_of(entry)) : most;
    }
    return most;
  }

  std::vector<Entry> entries_;
};

/// Barriers that go on until the object is destroyed.
class Barriers {
 public:
  Barriers(const Settings& settings, int nodes, const std::string& device)
      : process_(
            {sibling_program("oshrun"), "-n", std::to_string(settings.pes), "--gba", device, "/bin/sh", "-c",
             fmt::format("export SHMEM_HOST_ID=$((OSHRUN_RANK * {} / {})); exec \"$0\" \"$@\"", nodes, settings.pes),
             worker_program(), "no file", "loss", "0"},
            {}, {.output = base::Output::kCollected, .grace = kGrace}) {}

  [[nodiscard]] Log log() const { return Log(process_.output()); }
  /// The time after `when` at which the PEs began to use the device; `when` if they have used it since before; nothing
  /// if they did not in time.
  std::optional<long long> await_use(long long when) {
    const auto begin = Clock::now();
    for (; Clock::now() < begin + kLimit; std::this_thread::sleep_for(kPoll)) {
      if (!process_.running()) {
        throw std::runtime_error("the job has ended: " + process_.output());
      }
      const Log until_now = log();
      if (const auto used = until_now.in_use_after(when)) {
        return used;
      }
      if (Clock::now() > begin + kNoticed && until_now.in_use()) {
        return when;
      }
    }
    return std::nullopt;
  }

 private:
  base::Process process_;
};

void lose(FakeDevice& device, Loss how) {
  device.process().signal(how == Loss::kKilled ? SIGKILL : SIGSTOP);
  if (how == Loss::kKilled) {
    device.process().wait();
  }
}

void bring_back(FakeDevice& device, Loss how) {
  if (how == Loss::kKilled) {
    device.start();
  } else {
    device.process().resume();
  }
}

std::string median_and_most(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? "-" : fmt::format("{:.3f} ({:.3f})", values[values.size() / 2], values.back());
}

/// What --check allows now.
double with_load(double limit) {
  return limit * std::max(1.0, load_of_machine() / own_processors());
}

/// True if the least of `seconds` is at most `limit`; else says so.
bool is_within(const char* what, const std::vector<double>& seconds, double limit) {
  limit = with_load(limit);
  if (!seconds.empty() && *std::ranges::min_element(seconds) <= limit) {
    return true;
  }
  std::printf("%s: never within %.3f s\n", what, limit);
  return false;
}

/// False if --check finds a time too long.
bool measure(const Settings& settings, int nodes, Loss how) {
  FakeDevice device;
  Barriers barriers(settings, nodes, device.path());
  if (!barriers.await_use(0)) {
    throw std::runtime_error("the device was never used");
  }
  const double limit = how == Loss::kKilled ? kOpenIfKilled : kOpenIfStopped;
  // A barrier that nothing else ends, ends when the device goes on: only then, and long after the limit.
  const double away =
      settings.check ? std::max(settings.away, std::min(2 * with_load(limit), kLongestAway)) : settings.away;
  std::vector<double> open, longest, back;
  for (int i = 0; i < settings.repeats; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200 + 37 * i));
    const long long before = now_ns();
    lose(device, how);
    const long long lost = now_ns();
    std::this_thread::sleep_for(std::chrono::duration<double>(away));
    const long long returned = now_ns();
    bring_back(device, how);
    const long long ready = now_ns();
    const auto used = barriers.await_use(returned);
    const Log log = barriers.log();
    open.push_back(seconds(log.open_after(lost)));
    longest.push_back(seconds(log.longest(before, used.value_or(now_ns()))));
    if (used) {
      back.push_back(seconds(std::max(*used - ready, 0LL)));
    }
  }
  const std::size_t never = open.size() - back.size();
  std::printf("%d node%s, %-7s  %-15s  %-15s  %-15s%s\n", nodes, nodes > 1 ? "s" : " ",
              how == Loss::kKilled ? "killed" : "stopped", median_and_most(open).c_str(),
              median_and_most(longest).c_str(), median_and_most(back).c_str(),
              never > 0 ? (", not within two minutes: " + std::to_string(never)).c_str() : "");
  const bool open_ok = !settings.check || is_within("open barrier", open, limit);
  const bool back_ok = !settings.check || is_within("in use again", back, kInUseAgain);
  std::fflush(stdout);
  return open_ok && back_ok;
}

int run(const Settings& settings) {
  std::printf("%d PEs on %d processors, load %.1f; seconds, median (most)\n", settings.pes, own_processors(),
              load_of_machine());
  std::printf("the device is...  open barrier     any barrier      in use again\n");
  bool good = true;
  for (const int nodes : {1, 2}) {
    for (const Loss how : {Loss::kKilled, Loss::kStopped}) {
      good = measure(settings, nodes, how) && good;
    }
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Settings settings;
  return bench::run_program(
      {.name = "bench_loss",
       .description = "Measures the cost of losing the device.",
       .options = {{"--repeats", &settings.repeats, "losses of each kind"},
                   {"--pes", &settings.pes, "PEs of the job"},
                   {"--away", &settings.away, "seconds from the loss to the return of the device"},
                   {"--check", &settings.check, "fail if the least time of a kind is too long"}},
       .run = [&] { return bench::run(settings); }},
      argc, argv);
}
