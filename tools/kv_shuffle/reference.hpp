// SPDX-License-Identifier: Apache-2.0
// The files of Ascend SHMEM's kv_shuffle example: caches and tables of all PEs in one folder. Whole numbers are int64
// in the byte order of the machine. The example has one layer, with K and V apart, and a plan in pairs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/kv_shuffle/round_planner.hpp"

namespace kv_program {

/// Errors name the file and what it should contain.
class ReferenceFolder {
 public:
  enum class Kind { kInput, kGolden, kOutput };

  explicit ReferenceFolder(std::string path) : path_(std::move(path)) {}

  /// Creates the folder if it does not exist.
  [[nodiscard]] Result<void> create() const;

  /// The blocks of K of PE 0; all caches must have as many. Error: the file is not one or more blocks of `block_bytes`.
  [[nodiscard]] Result<std::int64_t> count_blocks(std::int64_t block_bytes) const;
  /// pair_list.bin, and the block tables and block_num of all PEs. Errors: sizes that do not match, pairs that are not
  /// mutual or both send, blocks out of range, a destination that is named twice.
  [[nodiscard]] Result<PairPlan> read_plan(int pes, std::int64_t blocks) const;
  /// The tables of this PE, and pair_list.bin on PE 0.
  [[nodiscard]] Result<void> write_plan(const PairPlan& plan) const;

  // The caches of this PE.
  [[nodiscard]] Result<void> read_inputs(const Caches& caches) const;
  [[nodiscard]] Result<void> write_caches(Kind kind, const Caches& caches) const;
  [[nodiscard]] Result<void> write_cache(Cache cache, Kind kind, std::span<const std::byte> bytes) const;
  /// Computed from inputs and tables. REQUIRES: the partner has written its inputs.
  [[nodiscard]] Result<void> write_golden(const Shape& shape, const PairPlan& plan) const;
  [[nodiscard]] bool has_golden() const;
  /// Error: the first byte that differs from the golden files; without them, from what inputs and tables say.
  [[nodiscard]] Result<void> compare_with_golden(const Caches& caches, const PairPlan& plan) const;

 private:
  [[nodiscard]] std::string file(const std::string& name, int pe) const;
  [[nodiscard]] std::string cache_file(Cache cache, Kind kind, int pe) const;
  [[nodiscard]] Result<void> read_cache(Cache cache, Kind kind, int pe, std::span<std::byte> bytes) const;
  [[nodiscard]] Result<void> make_golden(Cache cache, const PairPlan& plan, std::int64_t block_bytes,
                                         std::span<std::byte> bytes) const;
  [[nodiscard]] Result<std::vector<std::int64_t>> read_table(const std::string& path, std::int64_t count,
                                                             const std::string& why) const;
  [[nodiscard]] Result<void> read_blocks(PairRow& row, int pe, std::int64_t blocks) const;

  std::string path_;
};

/// --import. Collective: reads inputs and tables, shuffles, writes the outputs and, with --check, compares them.
/// Nothing moves before everything has been read and checked. Sets the number of blocks in `options`.
Outcome run_import(Options& options, Agreement& agreement, Results& results);

/// --generate. Collective: writes inputs, tables and golden files as the example's golden.py does, with other numbers:
/// five sequences of 0 to 1023 tokens on each PE, balanced in pairs.
Outcome run_generate(const Options& options, Agreement& agreement);

/// --export: writes a round of the trace as such files. Does nothing without a folder. Its calls are collective.
class Exporter {
 public:
  Exporter(const Options& options, const Caches& caches, Agreement& agreement);

  /// Inputs, tables and golden files.
  Outcome before(const RoundPlan& plan);
  Outcome after();

 private:
  const Caches& caches_;
  Agreement& agreement_;
  std::optional<ReferenceFolder> folder_;
};

}  // namespace kv_program
