// SPDX-License-Identifier: Apache-2.0
// What the PEs of a node share on the board behind the metadata areas; all zero at first.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "gba/gba.h"
#include "shmem/config/barrier_choice.hpp"
#include "shmem/config/tuning.hpp"
#include "shmem/cores/sharing.hpp"
#include "shmem/cores/wait.hpp"
#include "shmem/layout/call_counts.hpp"
#include "shmem/layout/heap_call.hpp"
#include "shmem/memory/node_memory.hpp"

namespace shmem {

/// The number of teams that a PE may be in at once, including the predefined ones.
constexpr int kMaxTeams = 4096;
/// Slots behind those, for the teams that make the calls of active sets (team/set_teams.hpp).
constexpr int kSetTeams = 64;
constexpr int kTeamSlots = kMaxTeams + kSetTeams;

/// A member's published arrival at device barriers: word[k & 1] = k << 2 | vote. Written by the member before it rings
/// k, read by members that cannot learn of k from their flag (uapi/README.md, "Losing the device").
struct alignas(64) PublishedArrival {
  std::array<std::atomic<std::uint64_t>, 2> word;
  std::atomic<std::uint64_t> joined;  // could this member join the group that was offered? offload/device_barrier.cpp
};

/// The time of a member's arrival at barrier `number`, in nanoseconds of the node's steady clock:
/// barrier/statistics.hpp.
struct ArrivalTimes {
  std::array<std::atomic<std::uint64_t>, 2> number, time;  // by number & 1
};

/// Member 0's offer of a group of the device. Plain data: written before a sync of the team, read after it.
struct alignas(64) GroupOffer {
  // kLater: no group now, but perhaps one in a check round.
  enum class Kind : std::uint32_t { kUnavailable, kLater, kNow };
  Kind kind;
  gba_group_handle handle;
};

/// Member 0's choice of algorithms, for all. Two that alternate, like TeamCalls.
struct TeamChoice {
  BarrierChoice barrier{};
  CollectiveChoice collectives{};
};
using ChoiceOffers = std::array<TeamChoice, 2>;

/// Left by the opener of a port for the members that share it. Written before it releases them, read after that.
struct alignas(64) PortReport {
  std::uint32_t by_device;       // this barrier was released by the device
  std::uint32_t active;          // the next barrier is the device's
  std::uint32_t votes;           // of a team on several nodes: barriers through it can be votes
  std::array<char, 180> reason;  // if it is not active: why
};

/// A collective call that creates teams, or chooses the barrier of one, as made by one PE; compared by all PEs of the
/// parent in the call's first sync.
struct TeamCall {
  enum Kind : std::int32_t { kNone, kStrided, kRows, kColumns, kBarrier };
  // Of rows and columns: size is the length of a row. Of a barrier: number_of_barrier().
  std::int32_t kind, start, stride, size;

  bool operator==(const TeamCall&) const = default;
};

/// A vote of a team on several nodes, among the members of one of them (team/spanning_team.hpp). Plain data: written
/// before a sync of them, read after it; the first member's answer is read before the next vote.
struct alignas(64) NodeVote {
  std::uint64_t digest, number;
  std::uint32_t willing;
  // Of the first member, for the others.
  std::uint32_t outcome, alike, all_willing;
  std::int64_t other;
  std::uint64_t given;
};

/// How the members that are left of a team agree on who they are: team/survivors.hpp.
struct alignas(64) SurvivalWords {
  std::atomic<std::uint64_t> begun;  // the last shrink that this member has begun
  std::atomic<std::uint64_t>
      verdict;                       // of this member in shrink n: 2 * n + 1 it is in, 2 * n it is left out; only grows
  std::atomic<std::uint64_t> made;   // member 0's: n << 32 | 1 + the slot of the new team; 0 there: none was free
  std::atomic<std::uint64_t> ended;  // member 0's, of a team of a list: members that have ended the team
};

/// The low bits of a counter, in which members count arrivals: enough for all PEs of a job.
constexpr int kArrivalBits = 16;

/// One member's part of one team's sync memory. A word has one writer at a time, except `counter`.
struct TeamSync {    // NOLINT(clang-analyzer-optin.performance.Padding): words of one use stand together
  SyncWord round;    // the barrier that this member has entered, or with all that it waits for
  SyncWord release;  // the barrier that is over, for this member or for those that wait for it
  SyncWord counter;  // members that have come to this one, 0 between barriers; the last barrier's number above that
  /// The last barrier that this member has entered, by any algorithm: for messages, and where the next team in the slot
  /// continues. Only grows.
  alignas(64) std::atomic<std::uint64_t> entered;
  std::atomic<std::uint64_t> number;             // an argument of a collective call: collective/members.hpp
  std::atomic<std::uint64_t> split;              // the last split-phase barrier that it has entered
  std::atomic<std::uint64_t> left;               // the last barrier that is over for this member
  std::atomic<std::uint64_t> calls, calls_over;  // as `entered` and `left`, for eager calls
  ArrivalTimes times;
  PublishedArrival arrival;
  GroupOffer offer{};
  NodeVote node_vote{};
  PortReport report{};
  // Two that alternate: a PE is at most one call ahead of another. Plain data: written before a sync of the team, read
  // after it.
  alignas(64) ChoiceOffers choice{};
  alignas(64) std::array<TeamCall, 2> call{};
  // Of the team whose first member this one will be: its slot, and the last number there; read after the call's second
  // sync.
  std::int32_t new_team = -1;
  std::uint64_t admission = 0;  // of a team that has admitted processes, by PE: team/admission.hpp
  std::uint64_t new_count = 0;
  // Member 0's are used, by number, if the team stands for the job: a PE that was left out knows only those of the team
  // before.
  std::array<HeapVote, 3> heap_vote{};
  SurvivalWords survival;
};

/// Words of one member that others store to or pull in the rounds of a barrier: each contains the number of a barrier
/// and only grows. Two sets that alternate, each large enough for ceil(log_k n) rounds with k - 1 words, for k up to 8
/// and n up to 16,384.
constexpr std::size_t kRoundWords = std::size_t{2} * 35;
using RoundWords = std::array<SyncWord, kRoundWords>;

/// Where a member puts its data in a collective call: team/eager.hpp. The word contains the call's number.
struct EagerHead {
  std::atomic<std::uint64_t> value;
  std::atomic<std::uint32_t> sleepers;
  std::uint64_t size;
};
struct alignas(64) EagerSlot : EagerHead {
  alignas(16) std::array<std::byte, kEagerInline> data;  // aligned for elements of any type
};
static_assert(sizeof(EagerSlot) == 128);
constexpr std::uint64_t kEagerSlots = 8;
/// Members publish what they have finished once in so many calls.
constexpr std::uint64_t kFinishedEach = 4;
/// A member that gives alone in a call, as in a broadcast, uses other places, of which there are more: PEs that share a
/// processor take many calls each time that they get it. The teams in the first slots have such places, and those of
/// active sets.
constexpr std::uint64_t kBroadcastSlots = 64;
constexpr int kBroadcastTeams = 256;
/// Of a team of many members: how many members of a group, by level, have finished the calls of a turn. Groups of level
/// 0 are kFinishedGroup members, those of the next one as many of these groups, and so on; their first members have the
/// counters. Zero between turns, of which no more overlap: a member is never more than kBroadcastSlots calls ahead.
constexpr int kFinishedGroup = 8;
constexpr std::size_t kFinishedLevels = 6;
constexpr std::uint64_t kFinishedTurns = std::max(kEagerSlots, kBroadcastSlots) / kFinishedEach;
using FinishedCounts = std::array<std::array<std::atomic<std::uint16_t>, kFinishedTurns>, kFinishedLevels>;
struct EagerWords {
  /// All data up to this call has been read, by this member; in a team of many members, member 0's: by all members.
  SyncWord finished;
  alignas(64) FinishedCounts counts;
  std::array<EagerSlot, kEagerSlots> place;  // used in turn
};
/// For data that does not fit into an EagerSlot; used in turn, too.
constexpr std::uint64_t kEagerRooms = 4;
struct alignas(64) EagerRoom {
  std::array<std::byte, kEagerLimit> data;
};
using EagerRooms = std::array<EagerRoom, kEagerRooms>;
constexpr std::size_t kBroadcastInline = 224;
struct alignas(64) BroadcastSlot : EagerHead {
  alignas(16) std::array<std::byte, kBroadcastInline> data;
};
static_assert(sizeof(BroadcastSlot) == 256);
constexpr std::uint64_t kBroadcastRooms = 8;
/// For an alltoall of more than fits into an EagerRoom, since each member gives something else to each of the others.
struct alignas(64) AlltoallRoom {
  std::array<std::byte, kAlltoallLimit> data;
};
struct BroadcastPlaces {
  std::array<BroadcastSlot, kBroadcastSlots> place;
  std::array<EagerRoom, kBroadcastRooms> room;
  std::array<AlltoallRoom, kEagerRooms> alltoall;
};

/// Sizes of teams that a node's PEs tell apart when they measure barriers: up to 2, 4, 8, ... members.
constexpr std::size_t kMeasuredBarriers = 32;

/// Where a PE sleeps while it waits for another PE to change one of its words. Pairs: layout/parking.hpp.
struct alignas(64) Parking {
  std::atomic<std::uint32_t> sleepers;
  std::atomic<std::uint32_t> event;
};

/// PeMetadata::admitted of a process that no team has, + the number of the last admission before it came.
constexpr std::uint64_t kNotAdmitted = std::uint64_t{1} << 63;

struct PeMetadata {  // NOLINT(clang-analyzer-optin.performance.Padding): words of one use stand together
  alignas(64) std::atomic<std::int32_t> pid;  // negative: that process runs, but is no PE: peers.hpp, leave.hpp
  std::atomic<std::int32_t> has_port;  // 1: has opened a port of the switch; written between barriers of the bootstrap
  std::atomic<std::int32_t> settled_ports;   // 1 + the number of the node's ports, once the PEs have settled it
  std::atomic<std::uint64_t> process_space;  // the PID namespace of pid; 0: unknown
  std::atomic<std::uint64_t> process_start;  // of pid, which another process may have later; 0: unknown
  std::atomic<std::uint64_t> started;        // of this job, in nanoseconds of the steady clock
  std::array<char, 64> host;                 // written before a barrier of the bootstrap, read after it
  Parking parking;
  std::array<SharedHeapCall, 2> heap_call;             // by number: a PE is at most one call ahead of another
  std::atomic<std::uint64_t> heap_calls, heap_digest;  // of the PEs that are left of a job: SymmetricHeap::regroup
  alignas(64) std::array<std::atomic<std::uint64_t>, kTeamSlots / 64> taken_teams;  // bit i: slot i is in use here
  /// PE 0's are used: runtime/barrier_trials.hpp.
  std::array<std::atomic<std::uint64_t>, kMeasuredBarriers> measured_barriers;
  // For calls of active sets: team/set_teams.hpp.
  std::atomic<std::int32_t> set_team;     // the slot of the team whose first member this PE is
  std::atomic<std::uint64_t> set_count;   // the last number in that slot
  std::atomic<std::uint32_t> one_caller;  // 1: at most one call at a time is made here, and none is checked
  // For a process that takes the place of this PE: team/admission.hpp.
  std::atomic<std::uint64_t> seat;
  std::atomic<std::uint64_t> admitted;    // when its process was admitted; not yet: from kNotAdmitted on
  std::atomic<std::uint64_t> admissions;  // the number of the last admission; on each PE, since any may be replaced
  RunsOn runs_on;
  CallCounts calls;
};

/// The board: a PeMetadata for each PE, then for each slot a TeamSync for each PE, then RoundWords, EagerWords and
/// EagerRooms in the same way, and BroadcastPlaces for the slots that have them. Those of one slot are contiguous, so
/// that a barrier reads few pages.
class Board {
 public:
  Board(std::byte* data, int pes) : data_(data), pes_(static_cast<std::size_t>(pes)) {}

  [[nodiscard]] PeMetadata& pe(int pe) const {
    return reinterpret_cast<PeMetadata*>(data_)[static_cast<std::size_t>(pe)];
  }
  [[nodiscard]] TeamSync& team(int slot, int pe) const { return at<TeamSync>(0, slot, pe); }
  [[nodiscard]] RoundWords& rounds(int slot, int pe) const { return at<RoundWords>(kTeamBytes, slot, pe); }
  [[nodiscard]] EagerWords& eager(int slot, int pe) const { return at<EagerWords>(kRoundsEnd, slot, pe); }
  [[nodiscard]] EagerRooms& rooms(int slot, int pe) const { return at<EagerRooms>(kEagerEnd, slot, pe); }
  /// nullptr: this slot has none.
  [[nodiscard]] BroadcastPlaces* broadcasts(int slot, int pe) const {
    const int set = slot - kMaxTeams;
    if (slot >= kBroadcastTeams && set < 0) {
      return nullptr;
    }
    return &at<BroadcastPlaces>(kRoomsEnd, set < 0 ? slot : kBroadcastTeams + set, pe);
  }

 private:
  // Bytes for each PE and slot before those of the next kind.
  static constexpr std::size_t kTeamBytes = sizeof(TeamSync);
  static constexpr std::size_t kRoundsEnd = kTeamBytes + sizeof(RoundWords);
  static constexpr std::size_t kEagerEnd = kRoundsEnd + sizeof(EagerWords);
  static constexpr std::size_t kRoomsEnd = kEagerEnd + sizeof(EagerRooms);
  static_assert(sizeof(PeMetadata) + kTeamSlots * kRoomsEnd + (kBroadcastTeams + kSetTeams) * sizeof(BroadcastPlaces) <=
                kBoardShare);

  template <typename T>
  [[nodiscard]] T& at(std::size_t before, int slot, int pe) const {
    auto* first = reinterpret_cast<T*>(data_ + pes_ * (sizeof(PeMetadata) + kTeamSlots * before));
    return first[static_cast<std::size_t>(slot) * pes_ + static_cast<std::size_t>(pe)];
  }

  std::byte* data_;
  std::size_t pes_;
};

}  // namespace shmem
