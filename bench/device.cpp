// SPDX-License-Identifier: Apache-2.0
// One member's round trip through the device: doorbell there, release flag back.
#include <gba/gba.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "bench/child.hpp"
#include "bench/clock.hpp"
#include "bench/round_trip.hpp"
#include "bench/sections.hpp"

namespace bench {
namespace {

constexpr std::chrono::seconds kStartLimit{10};
constexpr std::chrono::milliseconds kPoll{5};
constexpr std::uint64_t kWarmUp = 2'000;
constexpr std::uint64_t kSpinsBetweenLooksAtTheClock = std::uint64_t{1} << 22;
constexpr double kPatience = 10e9;

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

Device open_when_ready(Child& process, const std::string& path) {
  const auto end = std::chrono::steady_clock::now() + kStartLimit;
  while (true) {
    gba_device* device = nullptr;
    const int error = gba_open(path.c_str(), &device);
    if (error == 0) {
      return Device(device);
    }
    if (!process.running() || std::chrono::steady_clock::now() > end) {
      check(error, "opening the fake device");
    }
    std::this_thread::sleep_for(kPoll);
  }
}

/// A group that this process is the only member of; given back with the object.
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

  /// Nanoseconds of one barrier, spinning.
  double round_trip(std::uint64_t rounds) {
    const Stopwatch watch;
    for (std::uint64_t i = 0; i < rounds; ++i) {
      gba_group_arrive(group_.get(), ++sequence_);
      await(watch);
    }
    return watch.nanoseconds() / static_cast<double>(rounds);
  }

 private:
  void await(const Stopwatch& watch) {
    for (std::uint64_t spins = 1;; ++spins) {
      const int error = gba_group_test(group_.get(), sequence_);
      if (error == 0) {
        return;
      }
      if (error != -EAGAIN) {
        check(error, "waiting for the release");
      }
      if (spins % kSpinsBetweenLooksAtTheClock == 0 && watch.nanoseconds() > kPatience) {
        throw std::runtime_error("the fake device has not released a barrier for ten seconds");
      }
    }
  }

  gba_device* device_;
  gba_group_handle handle_{};
  Group group_;
  std::uint64_t sequence_ = 0;
};

}  // namespace

Series measure_device(const CpuPair& cpus) {
  const std::string socket = "@gba-bench-" + std::to_string(::getpid());
  Child process({sibling_program("gba-fake-device"), "--socket", socket, "--cpu", std::to_string(cpus.second)}, {},
                kDiscarded);
  const Pinned pinned(cpus.first);
  const auto device = open_when_ready(process, "vfio-user:" + socket);
  OneMemberGroup group(device.get());
  // The device polls: it must not take its processor from the other side of a raw round trip.
  const auto raw_without_device = [&] {
    process.stop();
    const double nanoseconds = raw_round_trip(cpus.second);
    process.go_on();
    return nanoseconds;
  };
  Series series{"GBA round trip, 1 member (arrive, test until released)", {}};
  for (Repeats repeats; repeats.another();) {
    Point point;
    point.raw_before = raw_without_device();
    group.round_trip(kWarmUp);
    point.figure = group.round_trip(kRoundTrips);
    point.raw_after = raw_without_device();
    point.base = point.raw();
    series.points.push_back(point);
  }
  return series;
}

}  // namespace bench
