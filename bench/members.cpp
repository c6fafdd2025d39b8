// SPDX-License-Identifier: Apache-2.0
// One release of many members. This process is all of them: it holds a connection for each, rings their doorbells one
// after the other and looks at their flags, so that no scheduler stands between.

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/clock.hpp"
#include "bench/fake_device.hpp"
#include "bench/sections.hpp"
#include "tests/integration/fake_device/raw_client.hpp"

namespace bench {
namespace {

constexpr double kPatience = 10e9;
constexpr std::uint64_t kSpinsBetweenLooksAtTheClock = std::uint64_t{1} << 20;
/// Of one repeat: some milliseconds.
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
    const Stopwatch watch;
    for (std::uint64_t spins = 1; port.flag(group_) != sequence_; ++spins) {
      if (spins % kSpinsBetweenLooksAtTheClock == 0 && watch.nanoseconds() > kPatience) {
        throw std::runtime_error("the fake device has not released a barrier for ten seconds");
      }
    }
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

}  // namespace bench
