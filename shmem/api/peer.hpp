// SPDX-License-Identifier: Apache-2.0
// Where a call goes: PE `pe` of the job, or of a context's team.
#pragma once

#include "shmem/api/far.hpp"
#include "shmem/memory/parking.hpp"

namespace shmem::api {

/// wake_parked, of the current context; the PE's number on this node.
void wake_sleeper(int number);

/// The PE that a call means, by its number in the job. `call` is what the user wrote. The library need not know yet
/// where the PE is: most calls are for the heap of one on this node, and need no more.
struct Target {
  const Context& context;
  const char* call;
  int pe;

  /// `bytes` at `mine` are in the symmetric heap, and all PEs on this node. Never with SHMEM_DEBUG.
  [[nodiscard, gnu::always_inline]] static bool in_heap(const void* mine, std::size_t bytes) {
    const std::uintptr_t offset = heap_offset(mine);
    return offset < Context::reach().heap_size && bytes <= Context::reach().heap_size - offset;
  }
  /// `mine` as the PE has it. REQUIRES: in_heap.
  [[nodiscard, gnu::always_inline]] std::byte* in_its_heap(const void* mine) const {
    return Context::reach().first + static_cast<std::size_t>(pe) * Context::reach().heap_size + heap_offset(mine);
  }
  /// As wake_parked. REQUIRES: in_heap.
  [[gnu::always_inline]] void wake() const { wake_here(pe); }

  /// With SHMEM_DEBUG: ends the job if `local` cannot be a buffer of this PE.
  [[gnu::always_inline]] void check_own(const void* local, std::size_t bytes) const {
    if (context.checker() != nullptr) [[unlikely]] {
      check_local(context, call, local, local, bytes, pe);  // the same place: it overlaps with nothing
    }
  }

 protected:
  [[gnu::always_inline]] static void wake_here(int number) {
    if (Context::reach().metadata[number].parking.sleepers.load(std::memory_order_seq_cst) != 0) [[unlikely]] {
      wake_sleeper(number);
    }
  }

 private:
  [[gnu::always_inline]] static std::uintptr_t heap_offset(const void* mine) {
    return reinterpret_cast<std::uintptr_t>(mine) - Context::reach().mine;
  }
};

/// The same, found: on this node or on another one.
struct Peer : Target {
  explicit Peer(const Target& target) : Target(target), number(context.job().nodes.number(pe)) {}

  int number;  // on this node; below 0: it is on another one

  [[nodiscard]] bool is_far() const { return number < 0; }
  /// `mine` as the PE has it. Ends the job if `bytes` there are not symmetric. REQUIRES: not is_far().
  [[nodiscard]] std::byte* at(const void* mine, std::size_t bytes) const {
    // If not in the heap, then a global variable, or an error.
    return in_heap(mine, bytes) ? in_its_heap(mine) : remote(context, call, mine, bytes, pe);
  }
  /// The same for a copy from or to `local` of this PE.
  [[nodiscard]] std::byte* at(const void* mine, std::size_t bytes, const void* local) const {
    if (context.checker() != nullptr) [[unlikely]] {
      check_local(context, call, local, mine, bytes, pe);
    }
    return at(mine, bytes);
  }
  /// As wake_parked. REQUIRES: not is_far().
  void wake() const { wake_here(number); }
};

[[noreturn]] void refuse_count(const Target& target, std::size_t count);
/// The bytes of `count` elements; ends the job if that is more than can be addressed.
inline std::size_t bytes_of(const Target& target, std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) [[unlikely]] {
    refuse_count(target, count);
  }
  return bytes;
}

/// The context; ends the job if it is none. REQUIRES: not the default context.
const Ctx& valid_ctx(const Context& context, const char* call, shmem_ctx_t ctx);
[[noreturn]] void refuse_ctx_pe(const Context& context, const char* call, const Ctx& ctx, int pe);

// Both end the job if there is no such PE.

inline Target peer(const char* call, int pe) {
  // A negative one becomes larger than all; where the library does not run there are none.
  if (static_cast<unsigned>(pe) >= static_cast<unsigned>(Context::reach().pes)) [[unlikely]] {
    refuse_pe(call, pe);
  }
  return {*Context::current(), call, pe};
}

inline Target peer(const char* call, shmem_ctx_t ctx, int pe) {
  if (ctx == SHMEM_CTX_DEFAULT) {
    return peer(call, pe);
  }
  const Context& context = running(call);
  const Ctx& found = valid_ctx(context, call, ctx);
  if (pe < 0 || pe >= found.map.size) {
    refuse_ctx_pe(context, call, found, pe);
  }
  return {context, call, found.map.pe(pe)};
}

}  // namespace shmem::api

// Defines routine `name` and ctx_`name`, which takes a context as well. `arguments` are those of `parameters` but the
// last, the PE; `body(peer, arguments...)` does the work.
#define SHMEM_UNPACK(...) __VA_ARGS__
#define SHMEM_PLAIN_ROUTINE(type, name, parameters, body, arguments)           \
  SHMEM_ROUTINE(type, name, parameters) {                                      \
    return body(shmem::api::peer("shmem_" #name, pe), SHMEM_UNPACK arguments); \
  }
#define SHMEM_ROUTINE_WITH_CTX(type, name, parameters, body, arguments)                 \
  SHMEM_PLAIN_ROUTINE(type, name, parameters, body, arguments)                          \
  SHMEM_ROUTINE(type, ctx_##name, (shmem_ctx_t ctx, SHMEM_UNPACK parameters)) {         \
    return body(shmem::api::peer("shmem_ctx_" #name, ctx, pe), SHMEM_UNPACK arguments); \
  }
