// SPDX-License-Identifier: Apache-2.0
// Figures of the device: the round trip of one member through libgba, the release of many members (all in this process,
// so that no scheduler is involved), and how often an idle device wakes up.
#include <gba/gba.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/device_figures.hpp"
#include "bench/fake_device.hpp"
#include "tools/raw_client/raw_client.hpp"

namespace bench {
namespace {

constexpr std::uint64_t kWarmUp = 2'000;
constexpr std::uint64_t kSpinsBetweenLooksAtTheClock = std::uint64_t{1} << 22;
constexpr double kLimit = 10e9;

template <typename Done>
void spin_until(Done done) {
  const Stopwatch watch;
  for (std::uint64_t spins = 1; !done(); ++spins) {
    if (spins % kSpinsBetweenLooksAtTheClock == 0 && watch.nanoseconds() > kLimit) {
      throw std::runtime_error("the fake device has not released a barrier for ten seconds");
    }
  }
}

struct CloseDevice {
  void operator()(gba_device* device) const { gba_close(device); }
};
struct LeaveGroup {
  void operator()(gba_group* group) const { gba_group_leave(group); }
};
using Device = std::unique_ptr<gba_device, CloseDevice>;
using Group = std::unique_ptr<gba_group, LeaveGroup>;

void check(int error, const char* doing) {
  if (error != 0) {
    throw std::runtime_error(std::string(doing) + ": " + gba_error_text());
  }
}

Device open(const FakeDevice& process) {
  gba_device* device = nullptr;
  check(gba_open(("vfio-user:" + process.socket()).c_str(), &device), "opening the fake device");
  return Device(device);
}

/// A group whose only member is this process; the object frees it.
class OneMemberGroup {
 public:
  explicit OneMemberGroup(gba_device* device) : device_(device) {
    check(gba_group_alloc(device, 1, 0, &handle_), "allocating a group");
    gba_group* group = nullptr;
    check(gba_group_join(device, &handle_, 0, &group), "joining the group");
    group_.reset(group);
    check(gba_group_enable(device, &handle_), "enabling the group");
  }
  OneMemberGroup(const OneMemberGroup&) = delete;
  OneMemberGroup& operator=(const OneMemberGroup&) = delete;
  ~OneMemberGroup() {
    group_.reset();
    gba_group_free(device_, &handle_);
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
  [[nodiscard]] bool released() {
    const int error = gba_group_test(group_.get(), sequence_);
    if (error != -EAGAIN) {
      check(error, "waiting for the release");
    }
    return error == 0;
  }

  gba_device* device_;
  gba_group_handle handle_{};
  Group group_;
  std::uint64_t sequence_ = 0;
};

}  // namespace

Series measure_device(const CpuPair& cpus) {
  const FakeDevice process(cpus.second);
  const Pinned pinned(cpus.first);
  const auto device = open(process);
  OneMemberGroup group(device.get());
  const auto raw = [&] { return process.raw_round_trip_without_it(); };
  return measure_series("GBA round trip, 1 member (arrive, test until released)", raw, [&](Point& point) {
    group.round_trip(kWarmUp);
    point.figure = group.round_trip(kRoundTrips);
  });
}

namespace {

/// Doorbells per repeat, which takes some milliseconds.
constexpr std::uint64_t kDoorbells = 100'000;
constexpr double kEnoughForOneSize = 3e9;

/// Nanoseconds on average.
struct Times {
  double first_flag = 0;  // from the last doorbell
  double last_flag = 0;   // from the last doorbell
  double barrier = 0;     // from the first doorbell to the last flag
};

class Members {
 public:
  Members(const std::string& socket, unsigned count) {
    for (unsigned member = 0; member < count; ++member) {
      ports_.push_back(std::make_unique<raw::Port>(socket));
    }
    group_ = ports_.front()->make_group(count);
    for (unsigned member = 0; member < count; ++member) {
      ports_[member]->join(group_, member);
    }
  }

  Times barriers(std::uint64_t rounds) {
    Times sum;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const Times one = barrier();
      sum.first_flag += one.first_flag;
      sum.last_flag += one.last_flag;
      sum.barrier += one.barrier;
    }
    const auto count = static_cast<double>(rounds);
    return {sum.first_flag / count, sum.last_flag / count, sum.barrier / count};
  }

 private:
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

}  // namespace

std::vector<Series> measure_members(const CpuPair& cpus, unsigned count) {
  raise_file_limit();
  const FakeDevice device(cpus.second);
  const Pinned pinned(cpus.first);
  Members members(device.socket(), count);
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

namespace {

constexpr std::chrono::seconds kSettle{1};
constexpr std::chrono::seconds kCounted{5};

long voluntary_switches(pid_t pid) {
  const std::string name = "voluntary_ctxt_switches:";
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name, 0) == 0) {
      return std::stol(line.substr(name.size()));
    }
  }
  throw std::runtime_error("the fake device has ended");
}

}  // namespace

double idle_switches_per_second(const CpuPair& cpus, unsigned clients) {
  raise_file_limit();
  const FakeDevice device(cpus.second);
  std::vector<std::unique_ptr<raw::Port>> ports;
  raw::Port::Group group{};
  for (unsigned member = 0; member < clients; ++member) {
    ports.push_back(std::make_unique<raw::Port>(device.socket()));
    if (member == 0) {
      group = ports.front()->make_group(clients);
    }
    ports.back()->join(group, member);
  }
  std::this_thread::sleep_for(kSettle);
  const long before = voluntary_switches(device.pid());
  std::this_thread::sleep_for(kCounted);
  return static_cast<double>(voluntary_switches(device.pid()) - before) / static_cast<double>(kCounted.count());
}

}  // namespace bench
