// SPDX-License-Identifier: Apache-2.0
// Which way a collective call goes, by its size and team, as data: a text that bench/tune_collective writes, and one
// that the library has built in.
//
//   libshmem-collective-tuning 1                    the format, in the first line that is no comment
//   broadcast  alone    8  carried=64 split=32768   PEs that have a processor each, teams of up to 8
//   broadcast  alone    *  carried=96              larger teams
//   reduce     crowded  *  carried=0 split=2049     PEs outnumber the processors that they may use
//
// The first line that fits counts; where none does, the built-in table. Calls of up to `carried` bytes of each member
// go carried, those of `split` or more split, the others direct (kCollectiveWays). What is left out is 0 and never.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "shmem/result.hpp"

namespace shmem {

enum class Collective { kBroadcast, kCollect, kFcollect, kAlltoall, kReduce, kScan };
constexpr std::size_t kCollectives = 6;
constexpr std::array<std::string_view, kCollectives> kCollectiveNames{"broadcast", "collect", "fcollect",
                                                                      "alltoall",  "reduce",  "scan"};

/// The ways, for messages and manuals.
struct CollectiveWay {
  const char* name;
  const char* help;
};
constexpr std::array<CollectiveWay, 3> kCollectiveWays{
    {{"carried", "the data stand beside the words by which the members meet: one meeting, at most 96 bytes"},
     {"direct", "between two meetings each member reads what it needs in the others' memory"},
     {"split", "of broadcast and reduce: each member does a share for all, then reads the others' shares"}}};

/// What a member can put beside its word.
constexpr std::size_t kMostCarried = 96;
constexpr std::uint64_t kNeverSplit = std::numeric_limits<std::uint64_t>::max();

/// In bytes of one member, but of all its blocks for alltoall.
struct CollectiveLimits {
  std::uint64_t carried = 0;          // at most
  std::uint64_t split = kNeverSplit;  // at least
};
/// By Collective; the same on all members of a team.
using CollectiveChoice = std::array<CollectiveLimits, kCollectives>;

/// Of a line for teams of any size.
constexpr int kAnyPes = std::numeric_limits<int>::max();

struct CollectiveRow {
  Collective collective{};
  bool crowded = false;
  int most_pes = 0;
  CollectiveLimits limits{};
};

class CollectiveTable {
 public:
  static Result<CollectiveTable> parse(const std::string& text, std::string name);
  static CollectiveTable built_in();
  /// What SHMEM_COLLECTIVE_TUNING says, "" if it is not set.
  static Result<CollectiveTable> in_force(const std::string& file);

  [[nodiscard]] CollectiveChoice choose(int pes, bool crowded) const;
  /// The name of the file, or "the built-in table".
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Those of the file, then the built-in ones.
  [[nodiscard]] const std::vector<CollectiveRow>& rows() const { return rows_; }

 private:
  std::string name_;
  std::vector<CollectiveRow> rows_;
};

inline constexpr const char* kCollectiveFormat = "libshmem-collective-tuning 1";

/// As it is written in a table.
std::string to_string(const CollectiveRow& row);

}  // namespace shmem
