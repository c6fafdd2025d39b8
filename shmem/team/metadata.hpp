// SPDX-License-Identifier: Apache-2.0
// What the PEs of a node show to each other, on the board behind the metadata areas; all zero at first.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "shmem/barrier/algorithm_table.hpp"
#include "shmem/collective/tuning.hpp"
#include "shmem/cores/wait.hpp"
#include "shmem/memory/heap_call.hpp"
#include "shmem/memory/node_memory.hpp"

namespace shmem {

/// How many teams a PE may be in at once, the predefined ones among them.
constexpr int kMaxTeams = 4096;

/// A member's published arrival at device barriers: word[k & 1] = k << 2 | vote. Written by the member before it rings
/// k, read by members that cannot learn of k from their flag (uapi/README.md, "Losing the device").
struct alignas(64) PublishedArrival {
  std::array<std::atomic<std::uint64_t>, 2> word;
  std::atomic<std::uint64_t> joined;  // a Vote: could this member join the group that was offered?
};

/// When a member came to barrier `number`, in nanoseconds of the steady clock, which is the node's:
/// barrier/statistics.hpp.
struct ArrivalTimes {
  std::array<std::atomic<std::uint64_t>, 2> number, time;  // by number & 1
};

/// Member 0's offer of a group of the device. Plain data: written before a sync of the team, read after it.
struct alignas(64) GroupOffer {
  enum Kind : std::uint32_t { kNever, kLater, kNow };  // kLater: none now, but there may be one (GbaRecovery)
  Kind kind;
  std::uint32_t group, key, member_count;
  std::uint64_t sequence;
};

/// Member 0's choice of algorithms, for all. Two, by turns, as TeamCalls.
struct TeamChoice {
  BarrierChoice barrier{};
  CollectiveChoice collectives{};
};
using ChoiceOffers = std::array<TeamChoice, 2>;

/// What the opener of a port tells those who share it with him. Written before he lets them go, read then.
struct alignas(64) PortReport {
  std::uint32_t by_device;       // this barrier was released by the device
  std::uint32_t active;          // the next one is the device's
  std::array<char, 184> reason;  // if not: why
};

/// A collective call that makes teams, as its PE made it; compared by all PEs of the parent in the call's first sync.
struct TeamCall {
  enum Kind : std::int32_t { kNone, kStrided, kRows, kColumns };
  std::int32_t kind, start, stride, size;  // of rows and columns: size is the length of a row

  bool operator==(const TeamCall&) const = default;
};

/// What the members of a node tell each other of a team that is on several (team/span.hpp). Plain data: written before
/// a sync of them, read after it; what the first one answers is read before the next one.
struct alignas(64) SpanWords {
  std::uint64_t digest, number;
  std::uint32_t willing;
  // Of the first member, for the others.
  std::uint32_t outcome, alike, all_willing;
  std::int64_t other;
  std::uint64_t given;
};

/// The low bits of a counter, where members count themselves: enough for all PEs that a job can have.
constexpr int kArrivalBits = 16;

/// One member's part of one team's sync memory. A word has one writer at a time, but for `counter`.
struct TeamSync {
  SyncWord round;    // the barrier that this member has entered, or all that it waits for
  SyncWord release;  // the barrier that is over, for this member or for those that wait for it
  SyncWord counter;  // members that have come to this one, 0 between barriers; the last barrier's number above that
  /// The barrier that this member has entered, by whatever algorithm: for messages, and where the next team that takes
  /// the slot goes on. Only grows.
  alignas(64) std::atomic<std::uint64_t> entered;
  std::atomic<std::uint64_t> told;   // a number of a collective call: collective/members.hpp
  std::atomic<std::uint64_t> split;  // the last one that it has entered by a call of its own, before it waits
  std::atomic<std::uint64_t> left;   // the barrier that is over for this member
  std::atomic<std::uint64_t> calls, calls_over;  // as `entered` and `left`, of calls that carry data
  ArrivalTimes times;
  PublishedArrival arrival;
  GroupOffer offer{};
  SpanWords span{};
  PortReport report{};
  // Two, by turns: a PE is at most one call ahead of another. Plain data: written before a sync of the team, read after
  // it.
  alignas(64) ChoiceOffers choice{};
  alignas(64) std::array<TeamCall, 2> call{};
  std::array<std::uint32_t, 2>
      refused{};               // 1: this PE cannot do its part of that call; read after the call's second sync
  std::int32_t new_team = -1;  // the slot of the team whose first member this one will be; as `refused`
};

/// Words of one member that others store to, or that others pull, in the rounds of a barrier: each holds the number of
/// a barrier and only grows. Two sets, by turns, of enough for ceil(log_k n) rounds with k - 1 words each, for k to 8
/// and n to 16,384.
constexpr std::size_t kRoundWords = std::size_t{2} * 35;
using RoundWords = std::array<SyncWord, kRoundWords>;

/// Where a member puts what it gives in a collective call: collective/carrier.hpp. The word holds the call's number.
struct alignas(64) CarriedPlace {
  std::atomic<std::uint64_t> value;
  std::atomic<std::uint32_t> sleepers;
  std::uint64_t size;
  alignas(16) std::array<std::byte, kMostCarried> data;  // as aligned as an element of any type
};
static_assert(sizeof(CarriedPlace) == 128);
constexpr std::uint64_t kCarriedTurns = 8;
struct CarriedWords {
  SyncWord finished;  // all that others gave up to this call has been read; brought up to date now and then
  std::array<CarriedPlace, kCarriedTurns> place;  // by turns
};

/// Where a PE sleeps that waits for a word of its own to be changed by another PE. Pairs: memory/parking.hpp.
struct alignas(64) Parking {
  std::atomic<std::uint32_t> sleepers;
  std::atomic<std::uint32_t> event;
};

struct PeMetadata {
  alignas(64) std::atomic<std::int32_t> pid;
  std::atomic<std::int32_t> has_port;  // 1: has opened a port of the switch; told between barriers of the bootstrap
  std::atomic<std::uint64_t> process_space;  // the PID namespace, in which pid means something
  std::atomic<std::uint64_t> started;        // of this job, in nanoseconds of the steady clock
  std::array<char, 64> host;                 // written before a barrier of the bootstrap, read after it
  Parking parking;
  std::array<SharedHeapCall, 2> heap_call;  // by number: a PE is at most one call ahead of another
  std::array<HeapVote, 3> heap_vote;        // PE 0's are used, by number
  alignas(64) std::array<std::atomic<std::uint64_t>, kMaxTeams / 64> taken_teams;  // bit i: slot i is in use here
};

/// The board: a PeMetadata for each PE, then for each slot a TeamSync for each PE, then so RoundWords, and
/// CarriedWords. Those of one slot stand together, so that a barrier reads few pages.
class Board {
 public:
  Board(std::byte* data, int pes) : data_(data), pes_(static_cast<std::size_t>(pes)) {}

  [[nodiscard]] PeMetadata& pe(int pe) const {
    return reinterpret_cast<PeMetadata*>(data_)[static_cast<std::size_t>(pe)];
  }
  [[nodiscard]] TeamSync& team(int slot, int pe) const {
    auto* first = reinterpret_cast<TeamSync*>(data_ + pes_ * sizeof(PeMetadata));
    return first[static_cast<std::size_t>(slot) * pes_ + static_cast<std::size_t>(pe)];
  }

  [[nodiscard]] RoundWords& rounds(int slot, int pe) const {
    auto* first = reinterpret_cast<RoundWords*>(data_ + pes_ * (sizeof(PeMetadata) + kMaxTeams * sizeof(TeamSync)));
    return first[static_cast<std::size_t>(slot) * pes_ + static_cast<std::size_t>(pe)];
  }
  [[nodiscard]] CarriedWords& carried(int slot, int pe) const {
    auto* first = reinterpret_cast<CarriedWords*>(
        data_ + pes_ * (sizeof(PeMetadata) + kMaxTeams * (sizeof(TeamSync) + sizeof(RoundWords))));
    return first[static_cast<std::size_t>(slot) * pes_ + static_cast<std::size_t>(pe)];
  }

 private:
  std::byte* data_;
  std::size_t pes_;
};
static_assert(sizeof(PeMetadata) + kMaxTeams * (sizeof(TeamSync) + sizeof(RoundWords) + sizeof(CarriedWords)) <=
              kBoardShare);

}  // namespace shmem
