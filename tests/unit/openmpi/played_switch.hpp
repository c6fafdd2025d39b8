// SPDX-License-Identifier: Apache-2.0
// One group of a simulated device, and the calls of gba.h that a barrier makes to it. It can fail as a device does,
// when the test says so; no clock and no thread is involved.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gba/gba.h"

namespace openmpi_test {

/// The state of a member's connection to the switch.
enum class Way {
  kGood,
  kFails,   // no arrival or release passes; the next look reports the loss
  kSilent,  // the same, but the loss is reported late: many looks return -EAGAIN before -ECOMM
  kCoughs,  // one look fails although the connection works
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

  /// The group enters the error state and sends error releases.
  void fail();
  void lose(std::uint32_t member, Way way);
  void leave(gba_group& port);
  /// The next release reaches the members of `mask` only. After it the device is lost for all members, with `way`.
  void die_in_release(std::uint64_t mask, Way way);

  /// Called before an arrival takes effect, and after a look, before it returns.
  std::function<void(std::uint32_t member, std::uint64_t sequence)> before_arrival = [](auto, auto) {};
  std::function<void(std::uint32_t member)> after_look = [](auto) {};

  [[nodiscard]] std::uint64_t releases() const { return releases_; }
  /// The number of doorbells, without repeats.
  std::uint64_t rung = 0;
  /// The protocol error of a member, or "".
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

/// The machine as gba_list() and gba_open() of one process find it, and a record of what was opened.
struct PlayedMachine {
  PlayedSwitch* the_switch = nullptr;  // has the only group that can be joined
  std::vector<std::string> functions;
  std::vector<std::string> opened;  // "(default)": NULL
  int closed = 0;
  int error = 0;  // the result of the next gba_open
};
PlayedMachine& machine();

}  // namespace openmpi_test
