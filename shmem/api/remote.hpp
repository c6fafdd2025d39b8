// SPDX-License-Identifier: Apache-2.0
// How calls reach a PE on another node. All end the job on failure: most routines cannot report.
#pragma once

#include <bit>
#include <type_traits>

#include "shmem/api/entry.hpp"
#include "shmem/api/ordering.hpp"

namespace shmem::api {

struct Peer;

/// When a copy must be complete: on return, or after the next quiet().
enum class Done { kNow, kWithQuiet };

// REQUIRES: peer.is_remote().
void remote_put(const Peer& peer, void* dest, const void* source, std::size_t bytes, Done done = Done::kNow);
void remote_get(const Peer& peer, void* dest, const void* source, std::size_t bytes, Done done = Done::kNow);
/// Orders earlier puts to the PE before later ones; waits for no other PE.
void remote_fence(const Peer& peer);
/// For words of 4 or 8 bytes.
std::uint64_t remote_fetch(const Peer& peer, const void* word, std::size_t size, AtomicOperation operation,
                           std::uint64_t operand, std::uint64_t compared);
void remote_post(const Peer& peer, const void* word, std::size_t size, AtomicOperation operation,
                 std::uint64_t operand);

/// As progress(), but only now and then, for calls that take less time.
void progress_now_and_then(const Runtime& runtime);
/// After a read on this node that a program may repeat until the value changes: the writer may wait for this PE's
/// answer on another node.
[[gnu::always_inline]] inline void progress(const Runtime& runtime) {
  if (runtime.job().on_several_nodes()) [[unlikely]] {
    progress_now_and_then(runtime);
  }
}

/// The operation for any type of 4 or 8 bytes.
template <typename T>
T remote_atomic(const Peer& peer, const T* word, AtomicOperation operation, T operand = {}, T compared = {}) {
  using Bits = std::conditional_t<sizeof(T) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
  static_assert(sizeof(T) == sizeof(Bits));
  const auto before = static_cast<Bits>(
      remote_fetch(peer, word, sizeof(T), operation, std::bit_cast<Bits>(operand), std::bit_cast<Bits>(compared)));
  return std::bit_cast<T>(before);
}

/// The same without a result.
template <typename T>
void remote_post(const Peer& peer, const T* word, AtomicOperation operation, T operand) {
  using Bits = std::conditional_t<sizeof(T) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
  static_assert(sizeof(T) == sizeof(Bits));
  remote_post(peer, word, sizeof(T), operation, std::bit_cast<Bits>(operand));
}

}  // namespace shmem::api
