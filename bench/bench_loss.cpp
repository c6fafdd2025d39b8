// SPDX-License-Identifier: Apache-2.0
// The cost of losing the device: the time from the loss to the end of the barrier that is open then (a killed device is
// lost when its process has ended), the longest barrier from the loss until the device is used again, and the time from
// the return of a device until it is used. On one node, and on two nodes, which are environments on this machine.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/temp_folder.hpp"
#include "bench/jobs.hpp"
#include "bench/options.hpp"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr base::Seconds kLimit{120};
constexpr std::chrono::milliseconds kPoll{2};
/// By then a device that is stopped has been noticed, or has returned too early for that.
constexpr std::chrono::seconds kNoticed{2};

struct Settings {
  int repeats = 5;
  int pes = 4;
  double away = 3;
  int pause = 0;
  bool trace = false;
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

/// The output of a job.
struct Log {
  struct Entry {
    std::string what;
    long long when, length;
  };
  std::vector<Entry> entries;

  explicit Log(const std::string& output) {
    std::istringstream lines(output.substr(0, output.rfind('\n') + 1));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      Entry entry{.what = {}, .when = 0, .length = 0};
      if (words >> entry.what >> entry.when) {
        words >> entry.length;
        entries.push_back(entry);
      }
    }
  }
  /// The first time after `when` at which the PEs began to use the device.
  [[nodiscard]] std::optional<long long> in_use_after(long long when) const {
    for (const Entry& entry : entries) {
      if (entry.what == "device" && entry.when > when) {
        return entry.when;
      }
    }
    return std::nullopt;
  }
  /// Whether the device is in use at the end.
  [[nodiscard]] bool in_use() const {
    const auto last = std::find_if(entries.rbegin(), entries.rend(), [](const Entry& entry) {
      return entry.what == "device" || entry.what == "software";
    });
    return last != entries.rend() && last->what == "device";
  }
  /// Prints all entries since the loss, with times relative to it.
  void print(long long lost, long long ready) const {
    std::printf("returned after %.3f s\n", static_cast<double>(ready - lost) / 1e9);
    for (const Entry& entry : entries) {
      if (entry.when >= lost) {
        std::printf("  %.3f %s %.3f\n", static_cast<double>(entry.when - lost) / 1e9, entry.what.c_str(),
                    static_cast<double>(entry.length) / 1e9);
      }
    }
  }
  /// The time from `loss` to the end of the last barrier that was open then.
  [[nodiscard]] long long open_after(long long loss) const {
    long long longest = 0;
    for (const Entry& entry : entries) {
      if (entry.what == "long" && entry.when > loss && entry.when - entry.length <= loss) {
        longest = std::max(longest, entry.when - loss);
      }
    }
    return longest;
  }
  /// The longest barrier that ended between the two times.
  [[nodiscard]] long long longest(long long from, long long to) const {
    long long longest = 0;
    for (const Entry& entry : entries) {
      if (entry.what == "long" && entry.when >= from && entry.when < to) {
        longest = std::max(longest, entry.length);
      }
    }
    return longest;
  }
};

class Device {
 public:
  explicit Device(const base::TempFolder& folder) : socket_(folder.path() + "/gba.sock") { start(); }

  [[nodiscard]] std::string path() const { return "vfio-user:" + socket_; }
  void lose(Loss how) {
    process_->signal(how == Loss::kKilled ? SIGKILL : SIGSTOP);
    if (how == Loss::kKilled) {
      process_->wait();
    }
  }
  void bring_back(Loss how) {
    if (how == Loss::kStopped) {
      process_->resume();
    } else {
      start();
    }
  }

 private:
  void start() {
    process_ = std::make_unique<base::Process>(
        std::vector<std::string>{sibling_program("gba-fake-device"), "--socket", socket_});
    if (!process_->wait_for_output("ready", base::Seconds{20})) {
      throw std::runtime_error("the fake device does not become ready: " + process_->output());
    }
  }

  std::string socket_;
  std::unique_ptr<base::Process> process_;
};

class Job {
 public:
  Job(const Settings& settings, int nodes, const std::string& device)
      : process_({sibling_program("oshrun"), "-n", std::to_string(settings.pes), "--gba", device, "/bin/sh", "-c",
                  "export SHMEM_HOST_ID=$((OSHRUN_RANK * " + std::to_string(nodes) + " / " +
                      std::to_string(settings.pes) + ")); exec \"$0\" \"$@\"",
                  sibling_program("loss_worker"), std::to_string(settings.pause)},
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

std::string text_of(std::vector<double> values) {
  if (values.empty()) {
    return "-";
  }
  std::sort(values.begin(), values.end());
  char text[64];
  std::snprintf(text, sizeof text, "%.3f (%.3f)", values[values.size() / 2], values.back());
  return text;
}

/// What --check allows now.
double with_load(double limit) {
  return limit * std::max(1.0, load_of_machine() / own_processors());
}

/// True if the least of `seconds` is at most `limit`; else says so.
bool is_within(const char* what, const std::vector<double>& seconds, double limit) {
  limit = with_load(limit);
  if (!seconds.empty() && *std::min_element(seconds.begin(), seconds.end()) <= limit) {
    return true;
  }
  std::printf("%s: never within %.3f s\n", what, limit);
  return false;
}

/// False if --check finds a time too long.
bool measure(const Settings& settings, int nodes, Loss how) {
  const base::TempFolder folder;
  Device device(folder);
  Job job(settings, nodes, device.path());
  if (!job.await_use(0)) {
    throw std::runtime_error("the device was never used");
  }
  const double limit = how == Loss::kKilled ? kOpenIfKilled : kOpenIfStopped;
  // A barrier that nothing else ends, ends when the device goes on: only then, and long after the limit.
  const double away =
      settings.check ? std::max(settings.away, std::min(2 * with_load(limit), kLongestAway)) : settings.away;
  std::vector<double> open, longest, back;
  int never = 0;
  for (int i = 0; i < settings.repeats; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200 + 37 * i));
    const long long before = now_ns();
    device.lose(how);
    const long long lost = now_ns();
    std::this_thread::sleep_for(std::chrono::duration<double>(away));
    const long long returned = now_ns();
    device.bring_back(how);
    const long long ready = now_ns();
    const auto used = job.await_use(returned);
    const Log log = job.log();
    open.push_back(static_cast<double>(log.open_after(lost)) / 1e9);
    longest.push_back(static_cast<double>(log.longest(before, used.value_or(now_ns()))) / 1e9);
    if (settings.trace) {
      job.log().print(lost, ready);
    }
    if (used) {
      back.push_back(static_cast<double>(std::max(*used - ready, 0LL)) / 1e9);
    } else {
      ++never;
    }
  }
  std::printf("%d node%s, %-7s  %-15s  %-15s  %-15s%s\n", nodes, nodes > 1 ? "s" : " ",
              how == Loss::kKilled ? "killed" : "stopped", text_of(open).c_str(), text_of(longest).c_str(),
              text_of(back).c_str(), never > 0 ? (", not within two minutes: " + std::to_string(never)).c_str() : "");
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
                   {"--pause", &settings.pause, "microseconds by which PE 0 is late in each barrier"},
                   {"--trace", &settings.trace, "print each long barrier"},
                   {"--check", &settings.check, "fail if the least time of a kind is too long"}},
       .run = [&] { return bench::run(settings); }},
      argc, argv);
}
