// SPDX-License-Identifier: Apache-2.0
// The nodes of a team meet through the devices of one switch or of several.
//
// Leaders that share a switch are a block, or several blocks where they are more than its groups take members. Each
// block has a group of its device (GbaSpan). Where there is one block, a barrier is one of its group. Where there are
// several, it is three barriers, one after the other:
//
//   1. of each block: all of this block have come;
//   2. by messages among the first leaders of the blocks: all of all blocks have come;
//   3. of each block once more, to which its first leader comes after 2: all may go.
//
// Nobody leaves 3 before its first leader is there, which has left 2; and that is over when all first leaders have come
// to it, each after its own 1. So this holds whatever way a block goes in 1 and 3. One that has lost its device, or one
// of its leaders' way to it, goes by messages; GbaSpan says from which barrier on, alike on all its leaders, and the
// other blocks need not know. A leader that is alone in its block has nothing to do in 1 and 3, and needs no device.
//
// A block that has lost its device asks for a group again every so many barriers, and goes on through that.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shmem/barrier/gba_span.hpp"
#include "shmem/options.hpp"

namespace shmem {

/// What a leader tells the others of its port.
struct GbaHome {
  std::array<char, kLongestSwitchName + 1> switch_name{};
  std::uint32_t most = 0;  // members of a group; 0: it has no port
};

/// The block of each leader, numbered in the order of their first leaders. Leaders of one switch, in their order; in
/// each but the last one of a switch as many as a group takes there.
std::vector<int> blocks_of(const std::vector<GbaHome>& homes);

/// One leader's side. Used by one thread at a time.
class GbaSwitches {
 public:
  /// Of the two groups of messages that there may be beside `means.leaders`: as LeaderGroup.
  struct Numbers {
    std::uint32_t block, firsts;
  };

  /// `means` are of all leaders; `switch_name` is that of this one's switch.
  GbaSwitches(const GbaSpan::Means& means, const std::string& switch_name, Numbers numbers);

  // Collective among all leaders. An Error only if the leaders cannot talk.
  /// Asks for a group for each block, all or nobody; active() then, else reason().
  Result<void> join(const GbaMember& member);
  /// A barrier, by messages if it has to be.
  Result<void> meet();
  /// Gives the groups back in good order.
  Result<void> dissolve();

  /// The next barrier of this block goes through its device.
  [[nodiscard]] bool active() const { return used_ && (!span_ || span_->active()); }
  /// The last barrier went through it.
  [[nodiscard]] bool by_device() const { return by_device_; }
  /// How many have.
  [[nodiscard]] std::uint64_t served() const { return served_; }
  /// Why this block does not use its device, or "".
  [[nodiscard]] const std::string& reason() const { return used_ && span_ ? span_->reason() : reason_; }
  [[nodiscard]] int blocks() const { return blocks_; }
  /// Leaders in this block.
  [[nodiscard]] int size() const { return static_cast<int>(pes_.size()); }
  [[nodiscard]] bool first_of_block() const { return place_ == 0; }

 private:
  struct Outcome;
  [[nodiscard]] GbaHome home(const GbaMember& member) const;
  void form_blocks(const std::vector<GbaHome>& homes);
  /// Whether all blocks have what they need.
  Result<void> agree();
  Result<void> meet_block();
  Result<void> try_again();
  [[nodiscard]] LeaderGroup& block() { return block_ ? *block_ : means_.leaders; }

  const GbaSpan::Means means_;
  const std::string switch_name_;
  const Numbers numbers_;
  std::optional<GbaMember> member_;
  int blocks_ = 1;
  int place_ = 0;                              // in the block
  std::vector<int> pes_;                       // of the block, in the world
  std::optional<LeaderGroup> block_, firsts_;  // if there are several blocks; of first leaders
  std::optional<GbaSpan> span_;                // if there are several leaders in the block
  bool used_ = false;
  bool by_device_ = false;
  std::uint64_t served_ = 0;
  std::uint64_t lasted_ = 0;    // barriers since there was a group, until it was lost
  std::uint64_t next_try_ = 0;  // in so many barriers
  std::uint64_t patience_ = 0;
  std::string reason_;
};

}  // namespace shmem
