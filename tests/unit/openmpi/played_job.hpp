// SPDX-License-Identifier: Apache-2.0
// All members of one communicator on several nodes, played step by step in one thread, with the switch that serves them
// and the messages between their nodes; and what every barrier promises, checked after each step.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "openmpi/common/gba_board.h"
#include "tests/unit/openmpi/played_switch.hpp"

namespace openmpi_test {

/// Of each local member, who holds the port that it uses: by local place. A node {0, 0, 2}: members 0 and 2 have one.
using Node = std::vector<std::uint32_t>;

/// Gives one of 0..n-1; whoever plays decides by it what happens next.
using Pick = std::function<unsigned(unsigned n)>;

struct JobShape {
  std::vector<Node> nodes{};
  std::uint64_t before = 0;  // the barrier before the first
  std::uint64_t barriers = 3;
  int spin_time = 4;                // of a member whose way to the switch is silently gone
  int slow = -1;                    // this member seldom enters a barrier, when others have something to do
  unsigned interleaved_one_in = 0;  // others go on in the middle of a member's step, if pick(this) == 0; 0: never
};

class PlayedJob {
 public:
  PlayedJob(const JobShape& shape, Pick pick);
  PlayedJob(const PlayedJob&) = delete;
  PlayedJob& operator=(const PlayedJob&) = delete;
  ~PlayedJob();

  /// Plays until all barriers are over, or something is wrong; `before_step` is called with the number of each step.
  /// "": all was well.
  std::string play(const std::function<void(unsigned step)>& before_step);

  PlayedSwitch& the_switch() { return *switch_; }
  [[nodiscard]] std::uint32_t ports() const { return ports_; }
  [[nodiscard]] std::size_t size() const { return members_.size(); }
  gba_ompi_barrier_t& barrier(std::size_t member) { return members_[member].barrier; }
  gba_barrier_status status(std::size_t member) const { return gba_ompi_barrier_status(&members_[member].barrier); }
  /// The first barrier that was not the device's business any more; 0: all were. The same for all members.
  [[nodiscard]] std::uint64_t over_from() const { return members_[0].over_from; }
  [[nodiscard]] unsigned steps() const { return steps_; }

 private:
  struct NodeMemory {
    gba_ompi_node_t node{};
    std::vector<gba_ompi_words_t> words;
    gba_ompi_board_t board{};
  };
  struct Member {
    PlayedJob* job = nullptr;
    std::size_t node = 0;
    gba_ompi_barrier_t barrier{};
    std::uint32_t holder = 0;
    std::vector<std::uint32_t> sharers;
    std::uint64_t entered = 0, left = 0;
    std::uint64_t over_from = 0;
    bool busy = false;   // in the middle of a step
    bool idle = false;   // its last step changed nothing
    bool waits = false;  // and not for the first time: it has waited for a while
  };
  struct Message {
    std::uint64_t k, votes;
  };
  using Channel = std::vector<Message>;
  struct Step {
    Member* member;        // nullptr: a message is delivered
    std::size_t from, to;  // nodes
  };

  void build(const JobShape& shape);
  void make_barrier(Member& member, std::uint32_t local, std::uint64_t before);
  void check_arrival(std::uint32_t port, std::uint64_t k);
  static void tell(void* member, std::uint64_t k, std::uint64_t votes);
  void interleave();
  /// One step of one member or message that can do something; false: all are idle.
  bool step_somebody();
  void step(Member& member);
  void enter(Member& member);
  void look(Member& member);
  void leave(Member& member);
  void deliver(std::size_t from, std::size_t to);
  void rest(Member& member);
  /// Something has changed for all, or for the members of a node alone; those who have finished can only be asked.
  void wake_all();
  void wake_node(std::size_t node);
  [[nodiscard]] bool dawdles(const Member& member) const;
  [[nodiscard]] bool finished(const Member& member) const { return member.left == last_; }
  [[nodiscard]] Member& leader(std::size_t node) { return members_[leaders_[node]]; }
  void wrong(const std::string& what);
  void check_agreement();

  Pick pick_;
  std::uint64_t last_;
  int slow_;
  unsigned interleaved_one_in_;
  unsigned depth_ = 0;
  std::deque<Member> members_;  // that point to themselves
  std::deque<NodeMemory> nodes_;
  std::vector<std::size_t> leaders_;
  std::vector<std::vector<Channel>> channels_;  // [from][to]
  std::vector<std::size_t> member_of_port_;
  std::unique_ptr<PlayedSwitch> switch_;
  gba_barrier_port* port_ = nullptr;  // of all members: the switch knows them by their numbers
  std::uint32_t ports_ = 0;
  unsigned steps_ = 0;
  std::string wrong_;
};

}  // namespace openmpi_test
