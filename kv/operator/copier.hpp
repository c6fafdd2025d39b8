// SPDX-License-Identifier: Apache-2.0
// How the cores of a PE execute copies.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "kv/operator/copy_list.hpp"
#include "kv/operator/piece_copy.hpp"
#include "shmem/cores/core_group.hpp"

namespace shmem::kv {

struct Unmap {
  std::size_t size = 0;
  void operator()(std::byte* memory) const;
};

/// Memory of this PE alone, aligned to pages. Pages are allocated at their first use, near the core that uses them.
class PrivateMemory {
 public:
  /// Provides at least `bytes` bytes; earlier contents may be lost. Error: not_enough_memory.
  Result<void> reserve(std::size_t bytes);
  /// nullptr before the first reserve().
  [[nodiscard]] std::byte* data() const { return memory_.get(); }

 private:
  std::unique_ptr<std::byte, Unmap> memory_;
};

/// How many parts of a CopyQueue are taken. In symmetric memory. Relaxed throughout: it only hands out numbers. The
/// sync at the end of a shuffle makes visible what was copied.
class TakenParts {
 public:
  void reset() { taken_.store(0, std::memory_order_relaxed); }
  /// A part of `parts` that is not taken yet, from the front or from the back, as long as the two have not met.
  std::optional<std::uint32_t> take(bool at_front, std::uint32_t parts) {
    const std::uint64_t taken = taken_.fetch_add(at_front ? 1 : kOneAtBack, std::memory_order_relaxed);
    const auto front = static_cast<std::uint32_t>(taken);
    const auto back = static_cast<std::uint32_t>(taken / kOneAtBack);
    if (std::uint64_t{front} + back >= parts) {
      return std::nullopt;
    }
    return at_front ? front : parts - 1 - back;
  }

 private:
  static constexpr std::uint64_t kOneAtBack = std::uint64_t{1} << 32;
  std::atomic<std::uint64_t> taken_;  // front in the lower half, back in the upper
};

/// A work-stealing queue: copies that are cut into parts, which the cores of several PEs take one by one, so that
/// faster PEs take more. The owner takes parts from the front and others from the back, so that repeated shuffles find
/// most lines in the same processor's cache.
struct CopyQueue {
  CopyList copies{};
  bool own = true;
  TakenParts* taken = nullptr;
};

/// Used by one thread at a time. The cores outlive it.
class Copier {
 public:
  /// Error: no memory for scratch.
  static Result<Copier> create(CoreGroup& cores, Path path);

  /// Lets the calling thread do all later work alone, for the case that other threads would find no free processor.
  void use_one_core(bool one) { one_core_ = one; }
  /// The calling thread does this much work alone.
  [[nodiscard]] bool uses_one_core(std::size_t bytes) const;

  [[nodiscard]] int cores() const { return cores_->count(); }
  [[nodiscard]] CoreGroup& group() { return *cores_; }

  // Copies made by these calls are visible to a thread that sees a later release store of the caller.
  /// By all cores.
  void copy(const CopyList& copies);
  /// work(core, cores) on all cores, or on one for few bytes. The work does not throw.
  void run(std::size_t bytes, const std::function<void(int core, int cores)>& work);
  /// All parts that no other PE takes, by all cores.
  void copy(std::span<const CopyQueue> queues);
  /// The share of one core.
  void copy_share(const CopyList& copies, int core) { copy_share(copies, core, cores()); }

 private:
  Copier(CoreGroup& cores, Path path) : cores_(&cores), path_(path) {}
  void copy_share(const CopyList& copies, int core, int cores);
  void copy_parts(std::span<const CopyQueue> queues, int core);
  [[nodiscard]] std::span<std::byte> scratch_of(int core) const;

  CoreGroup* cores_;
  Path path_;
  bool one_core_ = false;
  PrivateMemory scratch_;
};

}  // namespace shmem::kv
