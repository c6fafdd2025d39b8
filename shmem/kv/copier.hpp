// SPDX-License-Identifier: Apache-2.0
// The cores of a PE at work on a list of copies.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

#include "shmem/cores/core_group.hpp"
#include "shmem/kv/copy_list.hpp"
#include "shmem/kv/piece_copy.hpp"
#include "shmem/kv/private_memory.hpp"

namespace shmem::kv {

/// Copies that are cut into parts, which cores of several PEs take one after the other: whoever is faster, or has less
/// of its own to do, takes more of them. Their owner begins at the front and others at the end, so that with the same
/// copies again most lines are in the cache of the processor that had them last time.
struct CommonCopies {
  CopyList copies;
  bool own = true;
  /// Parts taken at the front and, in the upper half, at the end. Relaxed: it hands out numbers; what is copied is made
  /// visible by whoever waits for all that may have taken one.
  std::atomic<std::uint64_t>* taken = nullptr;
};

/// Used by one thread at a time. The cores outlive it.
class Copier {
 public:
  /// Error: no memory for scratch.
  static Result<Copier> create(CoreGroup& cores, Path path);

  /// What follows is the calling thread's alone, as others would find no processor, or it is not any more.
  void set_alone(bool alone) { alone_ = alone; }
  /// So much work is done by the calling thread, without the others.
  [[nodiscard]] bool is_alone(std::size_t bytes) const;

  [[nodiscard]] int cores() const { return cores_->count(); }
  [[nodiscard]] CoreGroup& group() { return *cores_; }

  /// All of it, by all cores. Visible to whoever sees a release store that the caller makes afterwards.
  void copy(const CopyList& copies);
  /// work(core, cores) on all cores, or on one if there is not so much to do. It does not throw.
  void run(std::size_t bytes, const std::function<void(int core, int cores)>& work);
  /// All parts that nobody else has taken, by all cores, likewise.
  void copy(std::span<const CommonCopies> all);
  /// The share of one core, likewise.
  void copy_share(const CopyList& copies, int core) { copy_share(copies, core, cores()); }

 private:
  Copier(CoreGroup& cores, Path path) : cores_(&cores), path_(path) {}
  void copy_share(const CopyList& copies, int core, int cores);
  void take_parts(std::span<const CommonCopies> all, int core);
  [[nodiscard]] std::span<std::byte> scratch_of(int core) const;

  CoreGroup* cores_;
  Path path_;
  bool alone_ = false;
  PrivateMemory scratch_;
};

}  // namespace shmem::kv
