// SPDX-License-Identifier: Apache-2.0
// Tuning tables: how teams make barriers and collectives. bench/tune_barrier and bench/tune_collective write them as
// text; defaults are built in.
//
//   libshmem-barrier-tuning 1              the format, in the first line that is not a comment
//   alone           8  npu_v3              each PE has a processor of its own; teams of up to 8 PEs
//   alone           *  npu_v2 radix=4      larger teams
//   oversubscribed  *  central_counter     PEs outnumber the processors that they may use
//   nodes           *  npu_v2 radix=4      between the nodes of a team, by messages, for any number of nodes
//
//   libshmem-collective-tuning 1
//   broadcast  alone           8  eager=64 scatter-allgather=32768
//   broadcast  alone           *  eager=96
//   reduce     oversubscribed  *  eager=0 scatter-allgather=2049
//
// The first row that fits counts. "#" begins a comment; empty lines are skipped.
//
// Barriers: rows for "alone" and for "oversubscribed" both end with one for teams of any size, "*". radix=2..8 and
// group=N replace SHMEM_BARRIER_RADIX and SHMEM_BARRIER_GROUP. In a team on several nodes, these rows are for the PEs
// of each node. If no row for "nodes" fits, the built-in table counts.
//
// Collectives: calls of up to `eager` bytes for each member are eager, those of `scatter-allgather` bytes or more use
// that, all others are direct (kCollectiveWays). Defaults: 0 and never. If no row fits, the built-in table counts.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shmem/config/barrier_choice.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// A table's description for messages.
struct TableText {
  std::string name;    // of the file
  const char* what;    // the thing that it tunes
  const char* format;  // the first line that is not a comment
};

/// The contents of a text file that is not larger than a table may be. Does not wait for a FIFO.
Result<std::string> read_text(const std::string& file);

/// Calls row(line number, content) for each line after the format, which returns "" or the problem. Returns the number
/// of the last line.
Result<int> read_table(const TableText& table, const std::string& text,
                       const std::function<std::string(int line, const std::string& content)>& row);

/// RowTeams::most_pes of a row for teams of any size.
constexpr int kAnyPes = std::numeric_limits<int>::max();

/// The teams that a row is for.
struct RowTeams {
  bool oversubscribed = false;
  int most_pes = kAnyPes;  // or nodes
  bool nodes = false;      // it is about the nodes of a team, not about the PEs of a node

  [[nodiscard]] bool include(int pes, bool more_than_processors) const {
    return !nodes && oversubscribed == more_than_processors && pes <= most_pes;
  }
  [[nodiscard]] bool include_nodes(int number) const { return nodes && number <= most_pes; }
};

inline constexpr const char* kTuningFormat = "libshmem-barrier-tuning 1";

/// In the place of a file: the built-in table, and no measurement.
inline constexpr std::string_view kBuiltIn = "built-in";

struct TuningRow {
  int line = 0;
  RowTeams teams{};
  Algorithm algorithm{};
  std::optional<int> radix{};
  std::optional<int> group{};
};

/// Immutable.
class TuningTable {
 public:
  /// An Error names `name` and the line.
  static Result<TuningTable> parse(const std::string& text, std::string name);
  static TuningTable built_in();
  /// The table in the file that SHMEM_BARRIER_TUNING names, or the built-in one if `file` is "" or kBuiltIn.
  static Result<TuningTable> in_force(const std::string& file);

  [[nodiscard]] const TuningRow& choose(int pes, bool oversubscribed) const;
  /// Between this number of nodes. Line 0: of the built-in table, because this one has none.
  [[nodiscard]] TuningRow choose_between(int nodes) const;
  /// The name of the file, or "the built-in table".
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<TuningRow>& rows() const { return rows_; }

 private:
  std::string name_;
  std::vector<TuningRow> rows_;
};

/// As written in a table.
std::string to_string(const TuningRow& row);

enum class Collective { kBroadcast, kCollect, kFcollect, kAlltoall, kReduce, kScan };
constexpr std::size_t kCollectives = 6;
constexpr std::array<std::string_view, kCollectives> kCollectiveNames{"broadcast", "collect", "fcollect",
                                                                      "alltoall",  "reduce",  "scan"};

/// For messages and manuals.
struct CollectiveWay {
  const char* name;
  const char* help;
};
constexpr std::array<CollectiveWay, 3> kCollectiveWays{
    {{"eager", "each member puts its data next to its barrier word: one barrier, at most 1024 bytes (alltoall: 8192)"},
     {"direct",
      "between two barriers each member reads what it needs from the others' memory; broadcast, up to 32 members: only "
      "the root waits for all"},
     {"scatter-allgather", "broadcast and reduce only: each member does a share for all, then reads all shares"}}};

/// The bytes that fit next to a member's word, and into a place of their own.
constexpr std::size_t kEagerInline = 96;
constexpr std::size_t kEagerLimit = 1024;
constexpr std::size_t kAlltoallLimit = 8192;  // of an alltoall
constexpr std::size_t eager_limit(Collective collective) {
  return collective == Collective::kAlltoall ? kAlltoallLimit : kEagerLimit;
}
constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

/// In bytes of one member; for alltoall, of its blocks for the others.
struct CollectiveLimits {
  std::uint64_t eager = 0;                   // up to
  std::uint64_t scatter_allgather = kNever;  // from
};
/// By Collective; the same on all members of a team.
using CollectiveChoice = std::array<CollectiveLimits, kCollectives>;

inline constexpr const char* kCollectiveFormat = "libshmem-collective-tuning 1";

struct CollectiveRow {
  Collective collective{};
  RowTeams teams{};
  CollectiveLimits limits{};
};

/// Immutable.
class CollectiveTable {
 public:
  static Result<CollectiveTable> parse(const std::string& text, std::string name);
  static CollectiveTable built_in();
  /// The table in the file that SHMEM_COLLECTIVE_TUNING names, followed by the built-in one, which is used alone if
  /// `file` is "".
  static Result<CollectiveTable> in_force(const std::string& file);

  [[nodiscard]] CollectiveChoice choose(int pes, bool oversubscribed) const;
  /// The name of the file, or "the built-in table".
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<CollectiveRow>& rows() const { return rows_; }

 private:
  std::string name_;
  std::vector<CollectiveRow> rows_;
};

/// As written in a table: only the limits, or the whole row.
std::string to_string(const CollectiveLimits& limits);
std::string to_string(const CollectiveRow& row);

}  // namespace shmem
