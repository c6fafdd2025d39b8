// SPDX-License-Identifier: Apache-2.0
// Where the receivers of long messages copy them from: the buffers of their senders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>
#include <vector>

#include "shmem/collective/symmetric_memories.hpp"
#include "shmem/layout/job.hpp"
#include "shmem/memory/process_memory.hpp"

namespace shmem {

/// Where the bytes of a message are. For its sender, a memory of SymmetricMemories, or one of these.
struct MessagePlace : SymmetricPlace {
  /// They follow.
  static constexpr std::uint64_t kInline = 0;
  /// They follow; `offset` is the address of the sender's proof, which the receiver tries to read.
  static constexpr std::uint64_t kInlineWithProof = ~std::uint64_t{0};
  /// `offset` is an address of the sender's process.
  static constexpr std::uint64_t kPrivate = ~std::uint64_t{1};
  [[nodiscard]] bool is_inline() const { return memory == kInline || memory == kInlineWithProof; }
};

/// Whether a receiver can read the memory of a sender's process. It is not known before it has tried.
enum class Reads : std::uint32_t { kUnknown, kYes, kNo };

/// One member's. Used by one thread at a time.
class MessagePlaces {
 public:
  /// `proof`: a word in this member's shared memory.
  MessagePlaces(const Job& job, const SymmetricMemories& memories, std::atomic<std::uint64_t>& proof);
  MessagePlaces(const MessagePlaces&) = delete;
  MessagePlaces& operator=(const MessagePlaces&) = delete;
  ~MessagePlaces() = default;

  /// The place of a long message that this member sends; `reads`: whether the receiver can read its memory.
  [[nodiscard]] MessagePlace place_of(const void* data, std::size_t size, Reads reads) const;
  /// Whether this member can read the memory of that one, which shows `proof` in its shared memory, and has it at that
  /// address of its own as well.
  Reads try_proof(int member, std::uint64_t address, std::uint64_t proof);
  /// Copies a message that is not inline. Errors: bad_address, its sender does not have such a place; owner_dead, the
  /// sender has ended meanwhile; permission_denied.
  std::errc copy(int member, const MessagePlace& place, std::byte* to, std::size_t size);

 private:
  const ProcessMemory* process(int member);

  const Job& job_;
  const SymmetricMemories& memories_;
  std::uint64_t proof_ = 0;
  std::vector<std::optional<ProcessMemory>> processes_;
  const CopyPermission permission_;
};

}  // namespace shmem
