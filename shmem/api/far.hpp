// SPDX-License-Identifier: Apache-2.0
// What calls do to a PE on another node. All of them end the job where it cannot be done: most routines cannot report.
#pragma once

#include <bit>
#include <type_traits>

#include "shmem/api/entry.hpp"

namespace shmem::api {

struct Peer;

/// When a copy is to be done: at once, or before the next quiet().
enum class Done { kNow, kWithQuiet };

// REQUIRES: peer.is_far().
void far_put(const Peer& peer, void* dest, const void* source, std::size_t bytes, Done done = Done::kNow);
void far_get(const Peer& peer, void* dest, const void* source, std::size_t bytes, Done done = Done::kNow);
/// 4 or 8 bytes.
std::uint64_t far_fetch(const Peer& peer, const void* word, std::size_t size, AtomicOperation operation,
                        std::uint64_t operand, std::uint64_t compared);
void far_post(const Peer& peer, const void* word, std::size_t size, AtomicOperation operation, std::uint64_t operand);

// In a job on several nodes only.
void far_fence();
void far_quiet();
/// For calls that look and do not wait: programs call them until they see something, which may come over the network.
void look_around();
/// The same, once in a while, for calls that take less time.
void look_around_at_times(const Context& context);
/// After a read on this node, which a program may repeat until it sees something: who is to write it may wait for this
/// PE's answer on another node.
[[gnu::always_inline]] inline void answer_others(const Context& context) {
  if (context.job().on_several_nodes()) [[unlikely]] {
    look_around_at_times(context);
  }
}

/// Puts before it are done before puts after it, PE by PE.
void fence();
/// Puts before it are done, and so is what was put aside for it.
void quiet();

/// The operation on words of any type of 4 or 8 bytes.
template <typename T>
T far_atomic(const Peer& peer, const T* word, AtomicOperation operation, T operand = {}, T compared = {}) {
  using Bits = std::conditional_t<sizeof(T) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
  static_assert(sizeof(T) == sizeof(Bits));
  const auto before = static_cast<Bits>(
      far_fetch(peer, word, sizeof(T), operation, std::bit_cast<Bits>(operand), std::bit_cast<Bits>(compared)));
  return std::bit_cast<T>(before);
}

/// The same without an answer.
template <typename T>
void far_post(const Peer& peer, const T* word, AtomicOperation operation, T operand) {
  using Bits = std::conditional_t<sizeof(T) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
  static_assert(sizeof(T) == sizeof(Bits));
  far_post(peer, word, sizeof(T), operation, std::bit_cast<Bits>(operand));
}

}  // namespace shmem::api
