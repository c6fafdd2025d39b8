// SPDX-License-Identifier: Apache-2.0
// A device that goes wrong on request: stands between the model and the world, and loses, delays or repeats what
// passes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "fake_device/effects.hpp"
#include "fake_device/injection.hpp"

namespace fake_device {

/// Pure but for `world`; used by one thread. What one port is sent stays in order, whatever is delayed: a store is
/// posted, and none overtakes another (uapi rule 20).
class Faults final : public Effects {
 public:
  /// Which member a port is of a group; below 0: none.
  using MemberOf = std::function<int(unsigned port, unsigned group)>;
  /// A store that was taken on, and that failed when it was due.
  struct FailedStore {
    unsigned port;
    unsigned group;
    std::uint64_t address;
  };

  Faults(Effects& world, unsigned ports, MemberOf member_of);

  /// Arms a fault, which waits for its occasion. REQUIRES: check() accepts it, and waits_for_occasion().
  void arm(const Injection& injection);
  void stall(unsigned group, Time until);
  void set_latency(Time mean, Time deviation);
  void clear();
  [[nodiscard]] std::size_t armed() const { return armed_.size(); }
  [[nodiscard]] std::uint64_t struck() const { return struck_; }
  void count_strike() { ++struck_; }

  /// The time at which what follows happens.
  void set_time(Time now) { now_ = now; }
  /// When run() has something to do; kNever.
  [[nodiscard]] Time next_deadline() const;
  /// Sends what is due. The result: what could not be stored.
  std::vector<FailedStore> run();
  /// The port has no client any more.
  void forget(unsigned port);

  // ---- Arrivals
  /// False: no arrival needs to be asked about.
  [[nodiscard]] bool touches_arrivals() const { return touches_arrivals_; }
  [[nodiscard]] bool stalled(unsigned group) const;
  [[nodiscard]] bool drops_arrival(unsigned port, unsigned group) {
    return strike(GBA_INJECT_DROP_ARRIVAL, port, group).has_value();
  }

  // ---- Effects
  bool store_flag(unsigned port, unsigned group, std::uint64_t address, std::uint64_t word) override;
  void raise(unsigned port, unsigned vector) override;
  void joined(unsigned port, unsigned group) override { world_.joined(port, group); }
  void opened(unsigned group, bool open) override { world_.opened(group, open); }
  void left(unsigned port, unsigned group) override;
  Time command_done(unsigned port) override;
  std::uint32_t random_key() override { return world_.random_key(); }

 private:
  struct Delayed {
    unsigned port;
    bool interrupt;
    unsigned target;  // group of a store, vector of an interrupt
    std::uint64_t address;
    std::uint64_t word;
  };
  struct Line {
    std::size_t waiting = 0;
    Time last_due = 0;
  };
  struct Stall {
    unsigned group;
    Time until;
  };

  [[nodiscard]] bool matches(const Injection& injection, unsigned port, unsigned group) const;
  /// The fault that strikes on this occasion, if there is one.
  std::optional<Injection> strike(unsigned kind, unsigned port, unsigned group);
  Time sample_latency();
  [[nodiscard]] Time later(Time by) const { return by < kNever - 1 - now_ ? now_ + by : kNever - 1; }
  void delay(const Delayed& operation, Time by);
  bool perform(const Delayed& operation);
  void note_arrival_faults();

  Effects& world_;
  const MemberOf member_of_;
  Time now_ = 0;
  std::vector<Injection> armed_;
  std::vector<Stall> stalls_;
  Time latency_ = 0;
  Time deviation_ = 0;
  bool touches_arrivals_ = false;
  std::uint64_t struck_ = 0;
  std::mt19937_64 random_;  // seeded alike every time, so that a run can be repeated
  std::vector<Line> lines_;
  std::map<std::pair<Time, std::uint64_t>, Delayed> delayed_;  // by due time, then in order
  std::uint64_t next_number_ = 0;
};

}  // namespace fake_device
