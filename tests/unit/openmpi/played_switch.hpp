// SPDX-License-Identifier: Apache-2.0
// One group of the device, played inside the test, and the calls of gba.h that a barrier makes to it. It can fail as a
// device does; when is the test's choice alone, and no clock and no thread is involved.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gba/gba.h"

namespace openmpi_test {

/// How a member finds its way to the switch.
enum class Way {
  kGood,
  kFails,   // nothing arrives or is released; the next look says so
  kSilent,  // the same, but many looks say that it takes longer: -ECOMM comes late
  kCoughs,  // one look fails, and nothing is wrong
};

class PlayedSwitch;

}  // namespace openmpi_test

/// A member's port and membership.
struct gba_group {
  openmpi_test::PlayedSwitch* owner = nullptr;
  std::uint32_t member = 0;
  openmpi_test::Way way = openmpi_test::Way::kGood;
  std::uint64_t flag = 0;  // the last sequence released
  bool error = false;
  int spin_time = 0;  // looks until -ECOMM
};

namespace openmpi_test {

class PlayedSwitch {
 public:
  PlayedSwitch(std::uint32_t members, std::uint64_t sequence, int spin_time);
  PlayedSwitch(const PlayedSwitch&) = delete;
  PlayedSwitch& operator=(const PlayedSwitch&) = delete;

  gba_group* port(std::uint32_t member) { return &ports_[member]; }

  /// The group enters error, with a release that says so.
  void fail();
  void lose(std::uint32_t member, Way way);
  void leave(gba_group& port);
  /// The next release reaches the members of `mask` only; then the ways of all others are `way`, and the device is
  /// gone for everybody.
  void die_in_release(std::uint64_t mask, Way way);

  /// Called before an arrival takes effect, and after a look, before its result is given.
  std::function<void(std::uint32_t member, std::uint64_t sequence)> before_arrival = [](auto, auto) {};
  std::function<void(std::uint32_t member)> after_look = [](auto) {};

  [[nodiscard]] std::uint64_t releases() const { return releases_; }
  /// Doorbells rung for the first time.
  std::uint64_t rung = 0;
  /// What a member did that a device holds against it, or "".
  [[nodiscard]] const std::string& violation() const { return violation_; }

  void arrive(gba_group& port, std::uint64_t sequence);
  static int look(gba_group& port, std::uint64_t sequence);

 private:
  void release();

  std::vector<gba_group> ports_;
  std::vector<bool> marked_;
  std::uint64_t released_;
  std::uint64_t releases_ = 0;
  bool error_ = false;
  bool dies_ = false;
  std::uint64_t reached_ = 0;
  Way death_ = Way::kFails;
  std::string violation_;
};

/// What gba_list and gba_open find, and what has been opened; one process's.
struct PlayedMachine {
  PlayedSwitch* the_switch = nullptr;  // of the one group that can be joined
  std::vector<std::string> functions;
  std::vector<std::string> opened;  // "(default)": NULL
  int closed = 0;
  int error = 0;  // of the next gba_open
};
PlayedMachine& machine();

}  // namespace openmpi_test
