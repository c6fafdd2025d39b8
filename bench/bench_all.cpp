// SPDX-License-Identifier: Apache-2.0
// All figures in one run, each compared with the raw speed of the machine at that moment. Those of the device: the
// round trip of one member through libgba, the release of many members (all in this process, so that no scheduler is
// involved), and how often an idle device wakes up.
#include <fmt/format.h>
#include <gba/gba.h>
#include <sys/resource.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/fake_device.hpp"
#include "bench/jobs.hpp"
#include "bench/options.hpp"
#include "tools/raw_client/raw_client.hpp"

namespace bench {
namespace {

void check(int error, const char* doing) {
  if (error != 0) {
    throw std::runtime_error(std::string(doing) + ": " + gba_error_text());
  }
}

/// A group of the device whose only member is this process.
class OneMemberGroup {
 public:
  explicit OneMemberGroup(const FakeDevice& device) {
    gba_device* opened = nullptr;
    check(gba_open(device.path().c_str(), &opened), "opening the fake device");
    device_.reset(opened);
    check(gba_group_alloc(opened, 1, 0, &handle_), "allocating a group");
    gba_group* group = nullptr;
    check(gba_group_join(opened, &handle_, 0, &group), "joining the group");
    group_.reset(group);
    check(gba_group_enable(opened, &handle_), "enabling the group");
  }

  /// Nanoseconds per barrier, with a spinning wait.
  double round_trip(std::uint64_t rounds) {
    const Stopwatch watch;
    for (std::uint64_t i = 0; i < rounds; ++i) {
      gba_group_arrive(group_.get(), ++sequence_);
      spin_until([this] { return released(); });
    }
    return watch.nanoseconds() / static_cast<double>(rounds);
  }

 private:
  struct Close {
    void operator()(gba_device* device) const { gba_close(device); }
    void operator()(gba_group* group) const { gba_group_leave(group); }
  };

  [[nodiscard]] bool released() {
    const int error = gba_group_test(group_.get(), sequence_);
    if (error != -EAGAIN) {
      check(error, "waiting for the release");
    }
    return error == 0;
  }

  std::unique_ptr<gba_device, Close> device_;
  gba_group_handle handle_{};
  std::unique_ptr<gba_group, Close> group_;
  std::uint64_t sequence_ = 0;
};

/// Nanoseconds on average.
struct Times {
  double first_flag = 0;  // from the last doorbell
  double last_flag = 0;   // from the last doorbell
  double barrier = 0;     // from the first doorbell to the last flag
};

/// A group whose members are all in this process.
class Members {
 public:
  Members(const FakeDevice& device, unsigned count) {
    raise_file_limit();
    for (unsigned member = 0; member < count; ++member) {
      ports_.push_back(std::make_unique<raw::Port>(device.socket()));
    }
    if (count > 0) {
      group_ = ports_.front()->make_group(count);
    }
    for (unsigned member = 0; member < count; ++member) {
      ports_[member]->join(group_, member);
    }
  }

  Times barriers(std::uint64_t rounds) {
    const auto count = static_cast<double>(rounds);
    Times mean;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const Times one = barrier();
      mean.first_flag += one.first_flag / count;
      mean.last_flag += one.last_flag / count;
      mean.barrier += one.barrier / count;
    }
    return mean;
  }

 private:
  /// Each connection takes a few descriptors.
  static void raise_file_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
      limit.rlim_cur = limit.rlim_max;
      ::setrlimit(RLIMIT_NOFILE, &limit);
    }
  }

  Times barrier() {
    ++sequence_;
    const Stopwatch whole;
    for (unsigned member = 0; member < ports_.size(); ++member) {
      ports_[member]->arrive(group_, member, sequence_);
    }
    const Stopwatch after_last;
    Times times;
    await(*ports_.front());
    times.first_flag = after_last.nanoseconds();
    for (const auto& port : ports_) {
      await(*port);
    }
    times.last_flag = after_last.nanoseconds();
    times.barrier = whole.nanoseconds();
    return times;
  }
  void await(const raw::Port& port) const {
    spin_until([&] { return port.flag(group_) == sequence_; });
  }

  std::vector<std::unique_ptr<raw::Port>> ports_;
  raw::Port::Group group_{};
  std::uint64_t sequence_ = 0;
};

long voluntary_switches(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;) {
    long switches = 0;
    if (word == "voluntary_ctxt_switches:" && status >> switches) {
      return switches;
    }
  }
  throw std::runtime_error("the fake device has ended");
}

/// A group of one member: this process on one processor, the device on the other.
Series measure_device(const CpuPair& cpus) {
  constexpr std::uint64_t kWarmUp = 2'000;
  FakeDevice device(cpus.second);
  const Pinned pinned(cpus.first);
  OneMemberGroup group(device);
  const auto raw = [&] { return device.raw_round_trip_without_it(); };
  return measure_series("GBA round trip, 1 member (arrive, test until released)", raw, [&](Point& point) {
    group.round_trip(kWarmUp);
    point.figure = group.round_trip(kRoundTrips);
  });
}

/// A group of many members, all in this process: its release, and the cost of an arrival.
std::vector<Series> measure_members(const CpuPair& cpus, unsigned count) {
  constexpr std::uint64_t kDoorbells = 100'000;  // per repeat, which takes some milliseconds
  constexpr double kEnoughForOneSize = 3e9;
  FakeDevice device(cpus.second);
  const Pinned pinned(cpus.first);
  Members members(device, count);
  const std::string whose = std::to_string(count) + (count == 1 ? " member" : " members");
  std::vector<Series> all{{"GBA release of " + whose + ", last doorbell to first flag", {}},
                          {"GBA release of " + whose + ", last doorbell to last flag", {}},
                          {"GBA arrivals of " + whose + ", first doorbell to last flag, per arrival", {}}};
  const std::uint64_t rounds = kDoorbells / count;
  for (Repeats repeats(kEnoughForOneSize); repeats.another();) {
    Point point;
    point.raw_before = device.raw_round_trip_without_it();
    members.barriers(rounds / 10);
    const Times times = members.barriers(rounds);
    point.raw_after = device.raw_round_trip_without_it();
    point.base = point.raw();
    for (std::size_t which = 0; which < all.size(); ++which) {
      point.figure = which == 0 ? times.first_flag : which == 1 ? times.last_flag : times.barrier / count;
      all[which].points.push_back(point);
    }
  }
  return all;
}

/// Voluntary context switches per second of an idle device with the members of a group.
double idle_switches_per_second(const CpuPair& cpus, unsigned clients) {
  constexpr std::chrono::seconds kSettle{1};
  constexpr std::chrono::seconds kCounted{5};
  FakeDevice device(cpus.second);
  const Members members(device, clients);
  std::this_thread::sleep_for(kSettle);
  const long before = voluntary_switches(device.process().pid());
  std::this_thread::sleep_for(kCounted);
  return static_cast<double>(voluntary_switches(device.process().pid()) - before) /
         static_cast<double>(kCounted.count());
}

/// The base that a figure is compared with, and its form.
struct Presentation {
  std::string base{};     // name of Point::base; empty: no comparison
  std::size_t bytes = 0;  // moved per repeat: then shown in GB/s instead of nanoseconds
  std::string each{};     // the unit of work that a figure is the time of: then also shown as a rate
};

std::string number(double value, const char* unit) {
  return fmt::format("{:.{}f} {}", value, value < 100 ? 1 : 0, unit);
}

std::string time_or_speed(double nanoseconds, std::size_t bytes) {
  return bytes == 0 ? number(nanoseconds, "ns") : number(static_cast<double>(bytes) / nanoseconds, "GB/s");
}

std::string best_and_middle(const Spread& spread, std::size_t bytes) {
  return time_or_speed(spread.least, bytes) + " / " + time_or_speed(spread.middle, bytes);
}

std::string rate(const Spread& nanoseconds, const std::string& each) {
  return each.empty() ? "" : "; " + number(1e3 / nanoseconds.middle, "million ") + each + " a second";
}

void print(const Series& series, const Presentation& presentation) {
  const auto points = series.usable();
  const Spread figure = figures_of(points);
  std::printf("%s: %s%s\n", series.name.c_str(), best_and_middle(figure, presentation.bytes).c_str(),
              rate(figure, presentation.each).c_str());
  if (!presentation.base.empty()) {
    std::printf("    %s: %s; median of the time ratio: %.2f\n", presentation.base.c_str(),
                best_and_middle(bases_of(points), presentation.bytes).c_str(), median_ratio(points));
  }
  std::printf("    raw round trip meanwhile: %s; %zu of %zu repeats%s\n", best_and_middle(raws_of(points), 0).c_str(),
              points.size(), series.points.size(),
              points.size() > series.steady().size() ? ", none or few steady: the machine is busy" : "");
  std::fflush(stdout);
}

Series measure_raw(const CpuPair& cpus) {
  const Pinned pinned(cpus.first);
  const auto raw = [&] { return raw_round_trip(cpus.second); };
  return measure_series("raw round trip of a cache line", raw, [&](Point& point) { point.figure = raw(); });
}

Series measure_memcpy(const CpuPair& cpus) {
  const Pinned pinned(cpus.first);
  constexpr int kWarmUp = 10;
  constexpr int kCopies = 50;
  const std::vector<char> source(kMebibyte, 'x');
  std::vector<char> destination(kMebibyte, 'y');
  const auto copy = [&] {
    std::memcpy(destination.data(), source.data(), kMebibyte);
    asm volatile("" : : "r"(destination.data()) : "memory");  // keeps the copy from being optimised away
  };
  const auto raw = [&] { return raw_round_trip(cpus.second); };
  return measure_series("memcpy of 1 MiB within a process", raw, [&](Point& point) {
    time_each(kWarmUp, copy);
    point.figure = time_each(kCopies, copy);
  });
}

Presentation presentation_of_pes(const std::string& name) {
  if (name.starts_with("2-PE barrier")) {
    return {.base = "raw round trip"};
  }
  if (name.starts_with("put 1 MiB")) {
    return {.base = "memcpy to the same place", .bytes = kMebibyte};
  }
  if (name.starts_with("kv_shuffle")) {
    return {.base = "memcpy of the same blocks", .bytes = kShuffledBytes};
  }
  return {.base = "plain store to the same place"};
}

void print_pes() {
  for (const char* part : {"2-PE barriers", "puts", "kv of 8 MiB"}) {
    for (const Series& series : run_ours({2, {part, "31"}})) {
      print(series, presentation_of_pes(series.name));
    }
  }
}

void print_members(const CpuPair& cpus, unsigned count) {
  for (const Series& series : measure_members(cpus, count)) {
    print(series, {.base = "raw round trip", .each = series.name.starts_with("GBA arrivals") ? "arrivals" : ""});
  }
}

void print_idle(const CpuPair& cpus, unsigned clients) {
  const double switches = idle_switches_per_second(cpus, clients);
  std::printf("GBA, idle, %u members joined: %.1f voluntary context switches per second\n", clients, switches);
}

/// Prints the name of a section that fails; the others still run.
bool run_section(const char* name, const std::function<void()>& section) {
  try {
    section();
    return true;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "bench_all: %s: %s\n", name, error.what());
    return false;
  }
}

int run_all() {
  const CpuPair cpus = first_two_cpus();
  std::printf("%s, processors %d and %d. Each figure: best / median, over repeats in which the raw round trip of a\n",
              processor_name().c_str(), cpus.first, cpus.second);
  std::printf("cache line, measured right before and after it, stayed the same within a fifth.\n\n");
  bool good = run_section("raw round trip", [&] { print(measure_raw(cpus), {}); });
  good &= run_section("memcpy", [&] { print(measure_memcpy(cpus), {.bytes = kMebibyte}); });
  good &= run_section("GBA", [&] { print(measure_device(cpus), {.base = "raw round trip"}); });
  for (const unsigned count : {1U, 2U, 8U, 64U, 708U}) {
    good &= run_section("GBA members", [&] { print_members(cpus, count); });
  }
  for (const unsigned clients : {0U, 708U}) {
    good &= run_section("idle GBA", [&] { print_idle(cpus, clients); });
  }
  good &= run_section("PEs", print_pes);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::run_program({.name = "bench_all",
                             .description = "Measures the device and libshmem on one node. Takes some minutes.",
                             .options = {},
                             .run = bench::run_all},
                            argc, argv);
}
