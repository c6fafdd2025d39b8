// SPDX-License-Identifier: Apache-2.0
// All members of one communicator on several nodes, simulated step by step in one thread, with the switch that serves
// them and the messages between their nodes. The guarantees of a barrier are checked after each step.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "openmpi/common/gba_board.h"
#include "tests/unit/shmem/fake_gba.hpp"

namespace openmpi_test {

/// For each local member, the local place of the member whose port it uses. In {0, 0, 2}, members 0 and 2 hold a port.
using Node = std::vector<std::uint32_t>;

/// Returns a number in 0..n-1, which decides what happens next.
using Pick = std::function<unsigned(unsigned n)>;

struct JobShape {
  std::vector<Node> nodes{};
  std::uint64_t before = 0;  // the barrier before the first
  std::uint64_t barriers = 3;
  int spin_time = 4;                // looks until a silent loss is reported
  int slow = -1;                    // this member seldom enters a barrier while others can do a step
  unsigned interleaved_one_in = 0;  // others run in the middle of a step if pick(this) == 0; 0: never
};

class PlayedJob {
 public:
  PlayedJob(const JobShape& shape, Pick pick);
  PlayedJob(const PlayedJob&) = delete;
  PlayedJob& operator=(const PlayedJob&) = delete;
  ~PlayedJob();

  /// Plays until all barriers are over or a check fails. Calls `before_step` with the number of each step. Returns the
  /// failure, or "".
  std::string play(const std::function<void(unsigned step)>& before_step);

  [[nodiscard]] std::uint32_t ports() const { return ports_; }
  [[nodiscard]] std::size_t size() const { return members_.size(); }
  gba_ompi_barrier_t& barrier(std::size_t member) { return members_[member].barrier; }
  gba_barrier_status status(std::size_t member) const { return gba_ompi_barrier_status(&members_[member].barrier); }
  /// The first barrier without the device; 0: the device was used for all. The same for all members.
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
    bool waits = false;  // it has already waited for a while
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
  void make_barrier(Member& member, std::uint32_t local);
  void check_arrival(std::uint32_t port, std::uint64_t k);
  static void tell(void* member, std::uint64_t k, std::uint64_t votes);
  void interleave();
  /// Does one step of a member or message that can do one; false if all are idle.
  bool step_somebody();
  void step(Member& member);
  void enter(Member& member);
  void look(Member& member);
  void leave(Member& member);
  void deliver(std::size_t from, std::size_t to);
  void rest(Member& member);
  /// Wakes all members, or those of one node, after a change that may concern them.
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
  std::deque<Member> members_;  // a deque: members hold pointers to themselves
  std::deque<NodeMemory> nodes_;
  std::vector<std::size_t> leaders_;
  std::vector<std::vector<Channel>> channels_;  // [from][to]
  std::vector<std::size_t> member_of_port_;
  gba_barrier_port* port_ = nullptr;  // shared by all members: the switch tells them apart by number
  std::uint32_t ports_ = 0;
  unsigned steps_ = 0;
  std::string wrong_;
};

}  // namespace openmpi_test
