// SPDX-License-Identifier: Apache-2.0
// The nodes of a team meet through the device: the first member of each, its leader, is a member of one group. None of
// their barriers is lost with the device, or with one leader's way to it.
//
// uapi/README.md, rules 25 to 28, where members have no memory in common. Each leader has its words in memory of its
// own that the network reaches (FarArrival):
//
// - It publishes word[k & 1] = k << 2 | vote before it rings k, as everywhere. The words are read only by a leader that
//   has trouble, by the network, whatever their owner is doing: who was released from k and has gone on answers as it
//   answers any get. Two words are enough: no leader enters k + 2 before all have left k.
// - A leader that has trouble at k pulls k. In place of PULL in its own word, which nobody looks at in good times, it
//   sets the alarm of every other leader, and does not leave k before all are set. Leaders look at their own alarm
//   while they wait, which costs no message. An alarm is trouble like any other: who finds it set pulls the barrier it
//   is in, even if the device has released that one to others. So if an arrival at k was lost unnoticed, all that wait
//   for k learn of it; and nobody who waits for k + 1 misses that the puller votes OFF there and does not ring.
// - A pulled k ends when all words of k are there. One that says OFF was never released by the device, since its owner
//   did not ring k: then all have pulled k, read all of its words, which change no more, and found the OFF. So all know
//   of each barrier alike whether it is the last one of the group; the next one, and all after it, go by messages.
// - Who leaves the last k leaves the group. Others that still wait for k take the error release for what it is.
//   A word stays until its owner has passed one barrier more, which is by messages and needs those who still read it.
// - A place in this memory is used by one team after another. Their sequences go on where all of the places used for a
//   new group have got to, so that neither a late alarm nor an old word is taken for one of this group (rule 33).
//
// Losing a leader loses the barrier: the network says so to who reads its words, else the limit does.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "shmem/barrier/gba_agreement.hpp"
#include "shmem/net/leader_group.hpp"

namespace shmem {

/// One leader's side. Used by one thread at a time.
class GbaSpan {
 public:
  /// What it works with; outlives it.
  struct Means {
    Network& network;
    LeaderGroup& leaders;
    const std::vector<int>& pes;  // of the leaders, in the world
    FarBoard& board;
    int slot;  // of the team on this node
    WaitPolicy policy;
    std::function<std::string(int)> name;  // of a PE, for messages
    std::function<Result<void>()> check;   // ends waits
    std::chrono::milliseconds limit{0};    // of a barrier; 0: none
  };

  explicit GbaSpan(Means means);

  /// Collective, as all that follow. Asks for a group, all or nobody; active() then, else reason(). An Error only if
  /// the leaders cannot talk.
  Result<void> join(const GbaMember& member);
  /// A barrier. Loss of the device is no Error; active() no more after it on all leaders alike. REQUIRES: active().
  Result<void> meet();
  /// Gives the group back in good order.
  Result<void> dissolve();

  [[nodiscard]] bool active() const { return active_; }
  /// The last barrier was released by the device.
  [[nodiscard]] bool by_device() const { return by_device_; }
  /// By this group.
  [[nodiscard]] std::uint64_t served() const { return served_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  struct Bid;
  struct Offer;
  [[nodiscard]] Bid make_bid(const GbaMember& member) const;
  [[nodiscard]] Offer make_offer(const GbaMember& member, std::optional<OwnedGroup>& owned) const;
  /// Also where the places have got to, in base_.
  Result<bool> all_willing(const Bid& mine);
  Result<GbaMembership> join_group(const GbaMember& member, const Offer& offer) const;
  /// False: pull.
  Result<bool> await_release();
  Result<void> raise_alarms();
  Result<void> pull();
  /// The word of k of a leader, once it is there.
  Result<std::uint64_t> await_word(std::size_t leader);
  void lose();
  /// Before a sleep. `way`: in which this barrier is waited for.
  Result<void> look_after(const std::string& way, const std::function<std::string()>& missing);
  [[nodiscard]] std::string missing_text() const;
  [[nodiscard]] bool alarmed() const;
  [[nodiscard]] FarArrival& mine() const { return means_.board[static_cast<std::size_t>(means_.slot)]; }
  [[nodiscard]] FarPlace place(std::size_t leader, std::size_t offset) const;

  Means means_;
  std::vector<std::uint32_t> slots_;  // of the team on each node
  GbaPort* port_ = nullptr;
  std::optional<OwnedGroup> owned_;  // goes after the membership
  GbaMembership membership_;
  std::uint64_t base_ = 0;      // the group's first barrier is the one after it
  std::uint64_t sequence_ = 0;  // of the barrier entered last
  bool active_ = false;
  bool off_ = false;
  bool by_device_ = false;
  std::uint64_t served_ = 0;
  Clock::time_point began_{};  // to be looked after, this barrier
  std::string trouble_;
  std::string reason_;
};

}  // namespace shmem
