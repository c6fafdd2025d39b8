// SPDX-License-Identifier: Apache-2.0
// Barriers between the nodes of a team through the devices of one or several switches.
//
// Leaders that share a switch are a block, or several blocks if one group cannot take all of them. Each block has a
// group of its device (InterNodeBarrier). With one block, a barrier is a barrier of its group. With several blocks, it
// is three barriers, one after the other:
//
//   1. of each block: its leaders have arrived;
//   2. by messages among the first leaders of the blocks: all leaders have arrived;
//   3. of each block again, where the first leader arrives after 2: all may leave.
//
// No leader leaves 3 before its first leader has arrived there, after 2. Barrier 2 ends when all first leaders have
// arrived in it, each after its own 1. So this holds whether a block makes 1 and 3 through its device or by messages. A
// block uses messages if it has lost its device, or one of its leaders has lost access to it. InterNodeBarrier decides
// from which barrier on, the same on all its leaders, and the other blocks need not know. A leader that is alone in its
// block skips 1 and 3, and needs no device.
//
// A block that has lost its device asks for a group again, and uses that one from then on. Its leaders do that after
// the same barrier, whose number they cannot tell from a clock of their own. So the first leader sets how many barriers
// lie between two tries, such that little time does, and says when it is time to take a group.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shmem/config/options.hpp"
#include "shmem/offload/inter_node_barrier.hpp"

namespace shmem {

/// What a leader tells the others about its port.
struct GbaHome {
  std::array<char, kLongestSwitchName + 1> switch_name{};
  std::uint32_t most = 0;  // the most members of a group; 0: it has no port
};

/// The block of each leader. Blocks are numbered in the order of their first leaders. The leaders of one switch fill
/// its blocks in their order, each up to the size of a group.
std::vector<int> blocks_of(const std::vector<GbaHome>& homes);

/// One leader's side. Used by one thread at a time. Barriers by messages are made as `leaders` makes its own.
class GbaSwitches {
  static constexpr std::chrono::milliseconds kFirstBackOff{100};

 public:
  /// The ids of two process groups that may exist in addition to `means.leaders`.
  struct Ids {
    std::uint32_t block, firsts;
  };

  /// `means` is for all leaders; `switch_name` is the name of this leader's switch.
  GbaSwitches(const InterNodeBarrier::Means& means, const std::string& switch_name, Ids ids);

  // Collective among all leaders. An Error only if the leaders cannot communicate.
  /// Asks for a group for each block; all blocks get one (active()) or none (reason()).
  Result<void> join(const GbaMember& member);
  /// A barrier, by messages if a device cannot be used.
  Result<void> arrive_and_wait();
  /// Gives the groups back.
  Result<void> dissolve();

  /// The next barrier of this block goes through its device.
  [[nodiscard]] bool active() const { return used_ && (!device_ || device_->active()); }
  /// The last barrier went through the devices.
  [[nodiscard]] bool by_device() const { return by_device_; }
  /// How many barriers have.
  [[nodiscard]] std::uint64_t served() const { return served_; }
  /// Why this block does not use its device, or "".
  [[nodiscard]] const std::string& reason() const { return used_ && device_ ? device_->reason() : reason_; }
  [[nodiscard]] int blocks() const { return blocks_; }
  /// The number of leaders in this block.
  [[nodiscard]] int size() const { return static_cast<int>(pes_.size()); }
  [[nodiscard]] bool first_of_block() const { return place_ == 0; }

 private:
  struct Outcome;
  [[nodiscard]] GbaHome home(const GbaMember& member) const;
  void form_blocks(const std::vector<GbaHome>& homes);
  /// Agrees with all leaders whether every block has the group that it needs.
  Result<void> agree();
  Result<void> block_barrier();
  Result<void> try_again();
  /// How many barriers are to lie between this try and the next.
  std::uint32_t next_pause();
  void back_off();
  [[nodiscard]] ProcessGroup& block() { return block_ ? *block_ : means_.leaders; }

  const InterNodeBarrier::Means means_;
  const std::string switch_name_;
  const Ids ids_;
  std::optional<GbaMember> member_;
  int blocks_ = 1;
  int place_ = 0;                               // in the block
  std::vector<int> pes_;                        // of the block, in the world
  std::optional<ProcessGroup> block_, firsts_;  // with several blocks: of this block, of the first leaders
  std::optional<InterNodeBarrier> device_;      // with several leaders in the block
  bool used_ = false;
  bool by_device_ = false;
  std::uint64_t served_ = 0;
  std::uint64_t lasted_ = 0;    // barriers of the last group until it was lost
  std::uint32_t next_try_ = 1;  // barriers until the next request for a group
  std::uint32_t pause_ = 1;     // of them in all
  Clock::time_point last_try_{};
  Clock::time_point not_before_{};  // no group is taken
  std::chrono::milliseconds back_off_ = kFirstBackOff;
  std::string reason_;
};

}  // namespace shmem
