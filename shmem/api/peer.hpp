// SPDX-License-Identifier: Apache-2.0
// The destination of a call: PE `pe` of the job, or of a context's team.
#pragma once

#include "shmem/api/remote.hpp"
#include "shmem/layout/parking.hpp"

namespace shmem::api {

/// wake_parked with the current job; `number` is the PE's number on this node.
void wake_sleeper(int number);

/// The PE that a call means, by its number in the job. `call` is the name that the user wrote. Where the PE is need not
/// be known: most calls are for the heap of a PE on this node.
struct Target {
  const Runtime& runtime;
  const char* call;
  int pe;

  /// `bytes` at `mine` are in the symmetric heap, and all PEs are on this node. Always false with SHMEM_DEBUG
  /// and SHMEM_INFO.
  [[nodiscard, gnu::always_inline]] static bool in_heap(const void* mine, std::size_t bytes) {
    const std::uintptr_t offset = heap_offset(mine);
    return offset < Runtime::reach().unchecked_heap && bytes <= Runtime::reach().unchecked_heap - offset;
  }
  /// The address of `mine` in the PE. REQUIRES: in_heap.
  [[nodiscard, gnu::always_inline]] std::byte* in_its_heap(const void* mine) const {
    return Runtime::reach().first + static_cast<std::size_t>(pe) * Runtime::reach().unchecked_heap + heap_offset(mine);
  }
  /// As wake_parked. REQUIRES: in_heap.
  [[gnu::always_inline]] void wake() const { wake_here(pe); }

  /// With SHMEM_INFO: where no address is in_heap(), so that the shortest path counts nothing.
  [[gnu::always_inline]] void count(CallKind kind, std::size_t bytes) const {
    if (CallCounts* const counts = runtime.counts(); counts != nullptr) [[unlikely]] {
      counts->add(kind, bytes);
    }
  }

  /// With SHMEM_DEBUG: ends the job if `local` cannot be a buffer of this PE.
  [[gnu::always_inline]] void check_own(const void* local, std::size_t bytes) const {
    if (runtime.checker() != nullptr) [[unlikely]] {
      check_local(runtime, call, local, local, bytes, pe);  // the same address twice: no overlap is reported
    }
  }

 protected:
  [[gnu::always_inline]] static void wake_here(int number) {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // as in wake_parked
    if (Runtime::reach().metadata[number].parking.sleepers.load(std::memory_order_seq_cst) != 0) [[unlikely]] {
      wake_sleeper(number);
    }
  }

 private:
  [[gnu::always_inline]] static std::uintptr_t heap_offset(const void* mine) {
    return reinterpret_cast<std::uintptr_t>(mine) - Runtime::reach().mine;
  }
};

/// A Target whose place is known: on this node or on another one.
struct Peer : Target {
  explicit Peer(const Target& target) : Target(target), number(runtime.job().nodes.number(pe)) {}

  int number;  // on this node; below 0: on another node

  [[nodiscard]] bool is_remote() const { return number < 0; }
  /// The address of `mine` in the PE. Ends the job if `bytes` there are not symmetric. REQUIRES: not is_remote().
  [[nodiscard]] std::byte* at(const void* mine, std::size_t bytes) const {
    // Outside the heap it is a global variable or an error.
    return in_heap(mine, bytes) ? in_its_heap(mine) : remote(runtime, call, mine, bytes, pe);
  }
  /// The same for a copy, from or to `local` of this PE if it is given; nullptr if only copies by the kernel reach it:
  /// copied.hpp.
  [[nodiscard]] std::byte* at_if_mapped(const void* mine, std::size_t bytes) const {
    return in_heap(mine, bytes) ? in_its_heap(mine) : remote_if_mapped(runtime, call, mine, bytes, pe);
  }
  [[nodiscard]] std::byte* at_if_mapped(const void* mine, std::size_t bytes, const void* local) const {
    if (runtime.checker() != nullptr) [[unlikely]] {
      check_local(runtime, call, local, mine, bytes, pe);
    }
    return at_if_mapped(mine, bytes);
  }
  /// As wake_parked. REQUIRES: not is_remote().
  void wake() const { wake_here(number); }
};

[[noreturn]] void refuse_count(const Target& target, std::size_t count);
/// The bytes of `count` elements; ends the job if that overflows.
inline std::size_t bytes_of(const Target& target, std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) [[unlikely]] {
    refuse_count(target, count);
  }
  return bytes;
}

/// The context; ends the job if it is invalid. REQUIRES: not the default context.
const Ctx& valid_ctx(const Runtime& runtime, const char* call, shmem_ctx_t ctx);
[[noreturn]] void refuse_ctx_pe(const Runtime& runtime, const char* call, const Ctx& ctx, int pe);

// Both end the job if there is no such PE.

inline Target peer(const char* call, int pe) {
  // A negative number compares as larger than all PEs; before the start of the library there are no PEs.
  if (static_cast<unsigned>(pe) >= static_cast<unsigned>(Runtime::reach().pes)) [[unlikely]] {
    refuse_pe(call, pe);
  }
  return {*Runtime::current(), call, pe};
}

inline Target peer(const char* call, shmem_ctx_t ctx, int pe) {
  if (ctx == SHMEM_CTX_DEFAULT) {
    return peer(call, pe);
  }
  const Runtime& runtime = running(call);
  const Ctx& found = valid_ctx(runtime, call, ctx);
  if (pe < 0 || pe >= found.map.size) {
    refuse_ctx_pe(runtime, call, found, pe);
  }
  const int target = found.map.pe(pe);
  if (runtime.job().on_several_nodes()) [[unlikely]] {
    found.used.add(target);
  }
  return {runtime, call, target};
}

}  // namespace shmem::api

// Defines routine `name`, and ctx_`name`, which takes a context as well. `arguments` are the names of `parameters`
// without the last one, the PE; `body(peer, arguments...)` does the work.
#define SHMEM_UNPACK(...) __VA_ARGS__
#define SHMEM_PLAIN_ROUTINE(type, name, parameters, body, arguments)           \
  SHMEM_ROUTINE(type, name, parameters) try {                                  \
    return body(shmem::api::peer("shmem_" #name, pe), SHMEM_UNPACK arguments); \
  }                                                                            \
  SHMEM_CATCH(type)
#define SHMEM_ROUTINE_WITH_CTX(type, name, parameters, body, arguments)                 \
  SHMEM_PLAIN_ROUTINE(type, name, parameters, body, arguments)                          \
  SHMEM_ROUTINE(type, ctx_##name, (shmem_ctx_t ctx, SHMEM_UNPACK parameters)) try {     \
    return body(shmem::api::peer("shmem_ctx_" #name, ctx, pe), SHMEM_UNPACK arguments); \
  }                                                                                     \
  SHMEM_CATCH(type)
