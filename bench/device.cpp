// SPDX-License-Identifier: Apache-2.0
// One member's round trip through the device: doorbell there, release flag back.
#include <gba/gba.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "bench/clock.hpp"
#include "bench/fake_device.hpp"
#include "bench/round_trip.hpp"
#include "bench/sections.hpp"

namespace bench {
namespace {

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

Device open(const FakeDevice& process) {
  gba_device* device = nullptr;
  check(gba_open(("vfio-user:" + process.socket()).c_str(), &device), "opening the fake device");
  return Device(device);
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
  const FakeDevice process(cpus.second);
  const Pinned pinned(cpus.first);
  const auto device = open(process);
  OneMemberGroup group(device.get());
  Series series{"GBA round trip, 1 member (arrive, test until released)", {}};
  for (Repeats repeats; repeats.another();) {
    Point point;
    point.raw_before = process.raw_round_trip_without_it();
    group.round_trip(kWarmUp);
    point.figure = group.round_trip(kRoundTrips);
    point.raw_after = process.raw_round_trip_without_it();
    point.base = point.raw();
    series.points.push_back(point);
  }
  return series;
}

}  // namespace bench
