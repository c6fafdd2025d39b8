// SPDX-License-Identifier: Apache-2.0
// What `auto` chooses, as data: a text that bench/tune_barrier writes, and one that the library has built in.
//
//   libshmem-barrier-tuning 1            the format, in the first line that is no comment
//   alone    8  npu_v3                   PEs that have a processor each, teams of up to 8
//   alone    *  npu_v2 radix=4           larger teams
//   crowded  *  central_counter          PEs outnumber the processors that they may use
//
// The first line that fits counts. "alone" and "crowded" both end with a line for teams of any size, "*". radix=2..8
// and group=N stand for SHMEM_BARRIER_RADIX and SHMEM_BARRIER_GROUP, which count where they are left out. "#" begins a
// comment; empty lines are skipped.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shmem/barrier/algorithm_table.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// The first line.
inline constexpr const char* kTuningFormat = "libshmem-barrier-tuning 1";

struct TuningRow {
  int line = 0;
  bool crowded = false;
  int most_pes = 0;
  Algorithm algorithm{};
  std::optional<int> radix{};
  std::optional<int> group{};
};

/// Immutable.
class TuningTable {
 public:
  /// An Error names `name` and the line.
  static Result<TuningTable> parse(const std::string& text, std::string name);
  static Result<TuningTable> read(const std::string& file);
  static TuningTable built_in();
  /// That of the file, or the built-in one if there is no name of a file.
  static Result<TuningTable> in_force(const std::string& file);

  [[nodiscard]] const TuningRow& choose(int pes, bool crowded) const;
  /// The name of the file, or "the built-in table".
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<TuningRow>& rows() const { return rows_; }

 private:
  std::string name_;
  std::vector<TuningRow> rows_;
};

/// As it is written in a table.
std::string to_string(const TuningRow& row);

}  // namespace shmem
