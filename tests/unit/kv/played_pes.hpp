// SPDX-License-Identifier: Apache-2.0
// Several PEs played by threads of one process, each with caches, flags and an operator of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "shmem/kv/shuffle.hpp"

namespace kv_test {

using shmem::kv::CacheShape;
using shmem::kv::Call;
using shmem::kv::KvShuffle;

/// One PE's arguments that are its own.
struct Blocks {
  std::vector<std::int64_t> source, destination;
};

/// The "symmetric memory" of all PEs is one array; each PE's part has K, V and flags at the same offsets.
class PlayedPes {
 public:
  PlayedPes(int pes, int cores, const CacheShape& shape);

  [[nodiscard]] int pes() const { return pes_; }
  [[nodiscard]] std::size_t cache_bytes() const { return cache_bytes_; }
  [[nodiscard]] std::byte* k(int pe) { return memory_.get() + static_cast<std::size_t>(pe) * part_bytes_; }
  [[nodiscard]] std::byte* v(int pe) { return k(pe) + cache_bytes_; }

  void fill(unsigned seed);
  /// A copy of the caches of `pe`, K and then V.
  [[nodiscard]] std::vector<std::byte> caches(int pe);

  /// The arguments of a faultless call.
  Call call(int pe, const std::vector<std::int64_t>& pairs, const Blocks& blocks);
  /// All PEs at once; `change` may spoil the arguments of a PE. Empty texts are successes.
  std::vector<shmem::Error> run(const std::vector<std::int64_t>& pairs, const std::vector<Blocks>& blocks,
                                const std::function<void(int pe, Call&)>& change = {});
  /// One PE alone, in the calling thread.
  shmem::Error run_one(int pe, const Call& call);

  /// Calls that wait for longer fail.
  std::chrono::milliseconds time_limit{60'000};

 private:
  struct FreeAligned {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{64}); }
  };
  [[nodiscard]] shmem::SyncWord* flags(int pe) { return reinterpret_cast<shmem::SyncWord*>(v(pe) + cache_bytes_); }
  shmem::kv::Site site(int pe, int cores);

  int pes_;
  CacheShape shape_;
  std::size_t cache_bytes_, part_bytes_;
  std::unique_ptr<std::byte[], FreeAligned> memory_;
  std::vector<std::unique_ptr<KvShuffle>> operators_;
};

}  // namespace kv_test
