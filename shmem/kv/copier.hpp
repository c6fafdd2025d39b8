// SPDX-License-Identifier: Apache-2.0
// The cores of a PE at work on a list of copies.
#pragma once

#include "shmem/cores/core_group.hpp"
#include "shmem/kv/copy_list.hpp"
#include "shmem/kv/piece_copy.hpp"
#include "shmem/kv/private_memory.hpp"

namespace shmem::kv {

/// Used by one thread at a time. The cores outlive it.
class Copier {
 public:
  /// Error: no memory for scratch.
  static Result<Copier> create(CoreGroup& cores, Path path);

  [[nodiscard]] int cores() const { return cores_->count(); }
  [[nodiscard]] CoreGroup& group() { return *cores_; }

  /// All of it, by all cores. Visible to whoever sees a release store that the caller makes afterwards.
  void copy(const CopyList& copies);
  /// The share of one core, likewise.
  void copy_share(const CopyList& copies, int core) { copy_share(copies, core, cores()); }

 private:
  Copier(CoreGroup& cores, Path path) : cores_(&cores), path_(path) {}
  void copy_share(const CopyList& copies, int core, int cores);
  [[nodiscard]] std::span<std::byte> scratch_of(int core) const;

  CoreGroup* cores_;
  Path path_;
  PrivateMemory scratch_;
};

}  // namespace shmem::kv
