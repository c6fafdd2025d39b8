// SPDX-License-Identifier: Apache-2.0
// Memory of the members of a group, one part for each, that all of them map.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <memory>

#include "base/mapping.hpp"
#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/config/heap_placement.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// Zero at first, without a name in a file system. A member that no longer uses its part releases it, when it likes:
/// its pages go at once, and the others may still map and read it. Thread-safe.
class MemberMemory {
 public:
  /// Collective. `bytes` > 0 of each member, the same on all. All get the memory or all get an Error. Pages of the
  /// kernel's pool are not used: they would have to be touched here.
  static Result<std::shared_ptr<MemberMemory>> create(Bootstrap& members, std::size_t bytes, PlacementRequest request,
                                                      std::chrono::milliseconds limit);
  MemberMemory(const MemberMemory&) = delete;
  MemberMemory& operator=(const MemberMemory&) = delete;
  ~MemberMemory() = default;

  [[nodiscard]] std::byte* part(int member) const {
    return mapping_.data() + kHeader + static_cast<std::size_t>(member) * stride_;
  }
  [[nodiscard]] std::byte* mine() const { return part(me_); }
  [[nodiscard]] int members() const { return members_; }
  /// Of each part.
  [[nodiscard]] std::size_t size() const { return size_; }

  /// Once: this member does not use its part any more. Without an effect in a process forked from the member.
  void release();
  /// No member uses it any more.
  [[nodiscard]] bool is_unused() const { return holders().load(std::memory_order_acquire) == 0; }

 private:
  /// In front of the parts, so that each begins where a huge page may.
  static constexpr std::size_t kHeader = std::size_t{2} << 20;

  MemberMemory(base::Mapping mapping, std::size_t size, std::size_t stride, const Bootstrap& members);
  /// The members that have not released their parts.
  [[nodiscard]] std::atomic<int>& holders() const { return *reinterpret_cast<std::atomic<int>*>(mapping_.data()); }

  const base::Mapping mapping_;
  const std::size_t size_;
  const std::size_t stride_;
  const int me_;
  const int members_;
  const pid_t owner_;
};

}  // namespace shmem
