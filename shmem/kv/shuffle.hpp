// SPDX-License-Identifier: Apache-2.0
// The kv_shuffle operator of one PE: checks a call, runs it, says what went wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "shmem/cores/core_group.hpp"
#include "shmem/kv/kernel.hpp"

namespace shmem::kv {

/// What the operator knows of the job. Outlived by what its functions refer to.
struct Site {
  int me;
  int pes;
  WaitPolicy policy;  // for the calling threads and the cores of all PEs together
  /// The same object in the symmetric memory of `pe`; nullptr if `mine` is not in this PE's.
  std::function<std::byte*(const void* mine, int pe)> translate;
  /// The Check of a call that waits for `partner`; begins its time limit.
  std::function<CoreGroup::Check(int partner)> watch;
};

/// The arguments of one call, as the application gave them.
struct Call {
  std::byte* k;
  std::byte* v;
  CacheShape shape;
  const std::int64_t* pair_table;   // int64[2 * pes]
  const std::int64_t* source;       // of a sender: int64[block_count]
  const std::int64_t* destination;  // likewise
  std::int64_t block_count;
};

/// Used by one thread at a time. Collective: each PE of the job makes the same number of calls with the same pair table
/// and shape, in the same order.
class KvShuffle {
 public:
  /// Each PE's flags: symmetric, zero before any PE's first call, and there until all have ended their last.
  static std::size_t flag_count(int pes, int cores) {
    return static_cast<std::size_t>(pes) * static_cast<std::size_t>(cores);
  }
  /// Half of the cores copy K, half V. Error: their number is not even and positive.
  static Result<void> check_cores(int cores);
  /// Errors: as check_cores, or threads cannot be made.
  static Result<std::unique_ptr<KvShuffle>> create(Site site, int cores, SyncWord* flags);

  /// Returns when this PE's part is done: a sender has copied, a receiver's blocks are there, an idle PE returns at
  /// once. Everything is checked before anything moves; what only this PE can see to be wrong is told to its partner,
  /// whose call fails too (connection_aborted). The partner learns of bad_alloc as well, before it is thrown on. After
  /// an Error the destination blocks are undefined and all others are untouched; the next call works again.
  Result<void> run(const Call& call);

 private:
  KvShuffle(Site site, std::unique_ptr<CoreGroup> cores, SyncWord* flags)
      : site_(std::move(site)), cores_(std::move(cores)), flags_(flags) {}

  Result<Shuffle> prepare(const Call& call, const PairTable& table) const;
  Result<PeMemory> memory_of(const Call& call, std::size_t bytes, int pe) const;
  void tell_partner(const PairTable& table, std::errc error) const;
  Report shuffle(const Shuffle& shuffle);
  Report send(SoloCore<CoreGroup::Check>& caller, const Shuffle& shuffle);
  [[nodiscard]] tl::unexpected<Error> explain(const Shuffle& shuffle, const Report& report) const;
  [[nodiscard]] std::string name_call() const;

  Site site_;
  std::unique_ptr<CoreGroup> cores_;
  SyncWord* flags_;
  std::uint64_t count_ = 0;
};

}  // namespace shmem::kv
