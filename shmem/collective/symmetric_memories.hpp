// SPDX-License-Identifier: Apache-2.0
// The symmetric memory of a group: which buffers of a call are in it, and where those of the other members are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
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
/// a place that one of them names exists on all. Used by one thread at a time.
class SymmetricMemories {
 public:
  void add(std::uint64_t number, std::shared_ptr<MemberMemory> memory) { all_.push_back({number, std::move(memory)}); }
  /// Nothing names a memory that no member uses any more.
  void drop_unused() {
    std::erase_if(all_, [](const Numbered& one) { return one.memory->is_unused(); });
  }

  [[nodiscard]] bool empty() const { return all_.empty(); }
  /// Where this member's buffer is, if it is in symmetric memory. Empty buffers are anywhere.
  [[nodiscard]] std::optional<SymmetricPlace> find(const void* buffer, std::size_t bytes) const {
    const auto* const begin = static_cast<const std::byte*>(buffer);
    for (const Numbered& one : all_) {
      const std::byte* const mine = one.memory->mine();
      const std::size_t size = one.memory->size();
      if (begin >= mine && begin <= mine + size && bytes <= size - static_cast<std::size_t>(begin - mine)) {
        return SymmetricPlace{one.number, static_cast<std::uint64_t>(begin - mine)};
      }
    }
    return bytes == 0 ? std::optional(SymmetricPlace{}) : std::nullopt;
  }
  /// The address of a place that find() gave on that member.
  [[nodiscard]] std::byte* address(const SymmetricPlace& place, int member) const {
    const auto found =
        std::find_if(all_.begin(), all_.end(), [&place](const Numbered& one) { return one.number == place.memory; });
    return found != all_.end() ? found->memory->part(member) + place.offset : nullptr;
  }

 private:
  struct Numbered {
    std::uint64_t number;  // from 1 on
    std::shared_ptr<MemberMemory> memory;
  };
  std::vector<Numbered> all_;
};

}  // namespace shmem
