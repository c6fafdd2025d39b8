// SPDX-License-Identifier: Apache-2.0
// Where a call goes: PE `pe` of the job, or of a context's team.
#pragma once

#include "shmem/api/entry.hpp"

namespace shmem::api {

/// The PE that a call means, by its number in the job. `call` is what the user wrote.
struct Peer {
  const Context& context;
  const char* call;
  int pe;

  /// `mine` as the PE has it. Ends the job if `bytes` there are not symmetric.
  [[nodiscard, gnu::always_inline]] std::byte* at(const void* mine, std::size_t bytes) const {
    const NodeMemory& memory = context.job().memory;
    const auto offset =
        reinterpret_cast<std::uintptr_t>(mine) - reinterpret_cast<std::uintptr_t>(memory.heap(context.my_pe()));
    if (offset < memory.heap_size() && bytes <= memory.heap_size() - offset) {
      return memory.heap(pe) + offset;
    }
    return remote(context, call, mine, bytes, pe);  // a global variable, or an error
  }
};

/// The bytes of `count` elements; ends the job if that is more than can be addressed.
inline std::size_t bytes_of(const Peer& peer, std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    end_job(peer.context, peer.call, std::to_string(count) + " elements cannot be addressed");
  }
  return bytes;
}

/// The context; ends the job if it is none. REQUIRES: not the default context.
const Ctx& valid_ctx(const Context& context, const char* call, shmem_ctx_t ctx);
[[noreturn]] void refuse_ctx_pe(const Context& context, const char* call, const Ctx& ctx, int pe);

// Both end the job if there is no such PE.

inline Peer peer(const char* call, int pe) {
  const Context& context = running(call);
  check_pe(context, call, pe);
  return {context, call, pe};
}

inline Peer peer(const char* call, shmem_ctx_t ctx, int pe) {
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
