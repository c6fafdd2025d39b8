// SPDX-License-Identifier: Apache-2.0
// The files of Ascend SHMEM's kv_shuffle example: caches and tables of all PEs in one folder. Whole numbers are int64,
// and everything is in the byte order of the machine. Errors name the file and what it should be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shmem/kv/planner.hpp"
#include "shmem/kv/program/layout.hpp"
#include "shmem/result.hpp"

namespace kv_program {

class ReferenceFolder {
 public:
  enum class Kind { kInput, kGolden, kOutput };

  explicit ReferenceFolder(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] std::string cache_file(Cache cache, Kind kind, int pe) const;
  [[nodiscard]] bool has_golden() const;
  /// Makes the folder if it is not there.
  [[nodiscard]] shmem::Result<void> create() const;

  /// The blocks of K of PE 0, which all caches must have. Error: not one or more blocks of `block_bytes`.
  [[nodiscard]] shmem::Result<std::int64_t> count_blocks(std::int64_t block_bytes) const;
  /// Error: the file has not the size of `bytes`.
  [[nodiscard]] shmem::Result<void> read_cache(Cache cache, Kind kind, int pe, std::span<std::byte> bytes) const;
  [[nodiscard]] shmem::Result<void> write_cache(Cache cache, Kind kind, int pe, std::span<const std::byte> bytes) const;
  /// What the cache of `pe` must hold after the shuffle, by inputs and tables.
  [[nodiscard]] shmem::Result<void> make_golden(Cache cache, int pe, const shmem::kv::PairPlan& plan,
                                                std::int64_t block_bytes, std::span<std::byte> bytes) const;

  /// pair_list.bin, and the block tables and block_num of all PEs. Errors: sizes that do not fit together, pairs that
  /// are not mutual or both send, blocks that there are not, two for one destination.
  [[nodiscard]] shmem::Result<shmem::kv::PairPlan> read_plan(int pes, std::int64_t blocks) const;
  /// The tables of `pe`, and pair_list.bin on PE 0.
  [[nodiscard]] shmem::Result<void> write_plan(const shmem::kv::PairPlan& plan, int pe) const;

 private:
  [[nodiscard]] std::string file(const std::string& name, int pe) const;
  [[nodiscard]] shmem::Result<std::vector<std::int64_t>> read_table(const std::string& path, std::int64_t count,
                                                                    const std::string& why) const;
  [[nodiscard]] shmem::Result<void> read_blocks(shmem::kv::PePlan& part, int pe, std::int64_t blocks) const;

  std::string path_;
};

}  // namespace kv_program
