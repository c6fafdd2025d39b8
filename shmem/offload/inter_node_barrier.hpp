// SPDX-License-Identifier: Apache-2.0
// Barriers between nodes through the device. The leader of a node is its first member; the leaders are the members of
// one group. The protocol is libgba's (gba/barrier.h); here are its words, which leaders read over the network, and its
// alarms.
//
// Each leader has its words in its own memory, which the network reaches (RemoteArrival) whatever the leader is doing:
// a leader that was released and computes for long answers by its progress thread, without which no group is used.
// Instead of PULL in its own word, a leader that has trouble sets the alarm of every other leader before it leaves the
// barrier. Leaders check their own alarm while they wait, which costs no message. Teams reuse places. The sequences of
// a new group continue after those of all its places, so that neither a late alarm nor an old word is taken for one of
// the new group (uapi rule 33).
//
// The loss of a leader fails the barrier: the network reports it to a leader that reads its words, else the limit ends
// the wait.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "shmem/barrier/wait_monitor.hpp"
#include "shmem/layout/remote_board.hpp"
#include "shmem/net/process_group.hpp"
#include "shmem/offload/gba_port.hpp"

namespace shmem {

/// One leader's side. Used by one thread at a time. Must not move.
class InterNodeBarrier final : BarrierWaiter {
 public:
  /// What it uses; outlives it.
  struct Means {
    const Job& job;
    Network& network;
    ProcessGroup& leaders;
    const std::vector<int>& pes;  // of the leaders, in the world
    RemoteBoard& board;
    int slot;  // of the team on this node
    WaitPolicy policy;
    std::function<bool()> interrupted;     // a member has given the team up
    std::function<std::string(int)> name;  // of a PE, for messages
  };

  explicit InterNodeBarrier(Means means);

  /// How a leader asks again for a group that was lost.
  struct Retry {
    bool due = true;          // it is time for that
    std::uint32_t pause = 1;  // barriers until the leaders ask next; then that of the first leader
    bool tried = false;       // all leaders could, and asked the device
  };

  // Collective.
  /// Asks for a group; all leaders get it (active()) or none (reason()). An Error only if the leaders cannot
  /// communicate.
  Result<void> join(const GbaMember& member, Retry& retry);
  Result<void> join(const GbaMember& member) {
    Retry first;
    return join(member, first);
  }
  /// A barrier. The loss of the device is not an Error: active() is false after it, on all leaders. REQUIRES: active().
  Result<void> arrive_and_wait();
  /// Gives the group back.
  Result<void> dissolve();

  [[nodiscard]] bool active() const { return gba_barrier_uses_device(barrier_.get()) != 0; }
  /// The last barrier was released by the device.
  [[nodiscard]] bool by_device() const { return by_device_; }
  /// How many barriers the device has released with this group.
  [[nodiscard]] std::uint64_t served() const;
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  struct Bid;
  struct Offer;
  class Monitor;
  [[nodiscard]] Bid make_bid(const GbaMember& member, const Retry& retry) const;
  /// Also updates sequence_ from the places of all leaders, and `pause`.
  Result<bool> all_willing(const Bid& mine, std::uint32_t& pause);
  [[nodiscard]] BarrierHandle make_barrier(const GbaMember& member);
  [[nodiscard]] Offer make_offer() const;
  /// After a group that not all have got.
  void drop_group();
  /// Finds out whether the device is there, and opens it again if not, while the caller goes on.
  void check_port();

  // What libgba calls. An Error with a text is kept in error_.
  int read_word(std::size_t leader, std::uint64_t k, std::uint64_t& word);
  Result<void> raise_alarms(std::uint64_t k);
  int note(const Result<void>& result);
  std::errc check(std::chrono::nanoseconds& longest) override;
  void sleep(std::chrono::nanoseconds time) override;

  [[nodiscard]] RemoteArrival& mine() const { return means_.board[static_cast<std::size_t>(means_.slot)]; }
  [[nodiscard]] RemotePlace place(std::size_t leader, std::size_t offset) const;

  Means means_;
  std::vector<std::uint32_t> slots_;  // of the team on each node
  GbaPort* port_ = nullptr;
  BarrierHandle barrier_;
  std::uint64_t sequence_ = 0;  // of the barrier entered last
  bool by_device_ = false;
  Monitor* monitor_ = nullptr;  // of the open barrier
  std::optional<Error> error_;
  std::string reason_;
};

}  // namespace shmem
