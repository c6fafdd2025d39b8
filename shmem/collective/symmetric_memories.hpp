// SPDX-License-Identifier: Apache-2.0
// The symmetric memory of a group: which buffers of a call are in it, and where those of the other members are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "shmem/memory/member_memory.hpp"

namespace shmem {

/// A buffer in its member's part of the memory with that number.
struct SymmetricPlace {
  std::uint64_t memory = 0;
  std::uint64_t offset = 0;
};

/// Members allocate together, so they number their memories alike. Each keeps a memory mapped until no member uses it:
/// a place that one of them names exists on all. Thread-safe.
class SymmetricMemories {
 public:
  void add(std::uint64_t number, std::shared_ptr<MemberMemory> memory) {
    const std::scoped_lock lock(mutex_);
    all_.push_back({number, std::move(memory)});
  }
  /// Nothing names a memory that no member uses any more.
  void drop_unused() {
    const std::scoped_lock lock(mutex_);
    std::erase_if(all_, [](const Numbered& one) { return one.memory->is_unused(); });
  }

  [[nodiscard]] bool empty() const {
    const std::scoped_lock lock(mutex_);
    return all_.empty();
  }
  /// Where this member's buffer is, if it is in symmetric memory. Empty buffers are anywhere.
  [[nodiscard]] std::optional<SymmetricPlace> find(const void* buffer, std::size_t bytes) const {
    const auto* const begin = static_cast<const std::byte*>(buffer);
    const std::scoped_lock lock(mutex_);
    for (const Numbered& one : all_) {
      const std::byte* const mine = one.memory->mine();
      const std::size_t size = one.memory->size();
      if (begin >= mine && begin <= mine + size && bytes <= size - static_cast<std::size_t>(begin - mine)) {
        return SymmetricPlace{one.number, static_cast<std::uint64_t>(begin - mine)};
      }
    }
    return bytes == 0 ? std::optional(SymmetricPlace{}) : std::nullopt;
  }
  /// The address of a place that find() gave on that member. Null: there are not that many bytes.
  [[nodiscard]] std::byte* address(const SymmetricPlace& place, int member, std::size_t bytes = 0) const {
    const std::scoped_lock lock(mutex_);
    const auto found =
        std::find_if(all_.begin(), all_.end(), [&place](const Numbered& one) { return one.number == place.memory; });
    const bool is_there =
        found != all_.end() && place.offset <= found->memory->size() && bytes <= found->memory->size() - place.offset;
    return is_there ? found->memory->part(member) + place.offset : nullptr;
  }

 private:
  struct Numbered {
    std::uint64_t number;  // from 1 on
    std::shared_ptr<MemberMemory> memory;
  };
  mutable std::mutex mutex_;
  std::vector<Numbered> all_;
};

}  // namespace shmem
