// SPDX-License-Identifier: Apache-2.0
// libshmem's calls of shmemx_exchange.h: libkvexchange's under their names.
//
// The linker finds what a program calls only in libraries that its command names, not in what those need ("DSO missing
// from command line"): with libshmem needing libkvexchange alone, -lshmem would link no exchange. A linker script
// libshmem.so that names both would do for linkers, but dlopen and ctypes cannot load a file of text, and programs that
// were linked before need these symbols with libshmem's version, which they would not find. glibc takes the symbols of
// a filter (DT_FILTER) from another library, other C libraries do not. A call that jumps to the other library works for
// all: cc -lshmem, oshcc, pkg-config, CMake, dlopen. The other library has second names for it, since its first ones
// are these, and a program may have loaded both.
#include "shmemx_exchange.h"

#define SHMEM_FORWARD(result, name, parameters, arguments)                 \
  extern "C" SHMEM_API decltype(shmemx_exchange_##name) kvexchange_##name; \
  extern "C" result shmemx_exchange_##name parameters noexcept {           \
    return kvexchange_##name arguments;                                    \
  }

SHMEM_FORWARD(int, open, (const char* name, const shmemx_exchange_options_t* options, shmemx_exchange_t** exchange),
              (name, options, exchange))
SHMEM_FORWARD(int, connect, (shmemx_exchange_t * exchange, const shmemx_exchange_network_t* network),
              (exchange, network))
SHMEM_FORWARD(int, address, (shmemx_exchange_t * exchange, char* text, size_t bytes), (exchange, text, bytes))
SHMEM_FORWARD(void, close, (shmemx_exchange_t * exchange), (exchange))
SHMEM_FORWARD(int, members, (shmemx_exchange_t * exchange, shmemx_exchange_member_t* members, size_t capacity),
              (exchange, members, capacity))
SHMEM_FORWARD(int, register, (shmemx_exchange_t * exchange, shmemx_memory_t* memory, uint32_t* region),
              (exchange, memory, region))
SHMEM_FORWARD(int, unregister, (shmemx_exchange_t * exchange, uint32_t region), (exchange, region))
SHMEM_FORWARD(int, publish, (shmemx_exchange_t * exchange, shmemx_exchange_entry_t* entries, size_t count),
              (exchange, entries, count))
SHMEM_FORWARD(int, withdraw,
              (shmemx_exchange_t * exchange, const shmemx_exchange_key_t* keys, size_t count, uint64_t timeout_ns),
              (exchange, keys, count, timeout_ns))
SHMEM_FORWARD(int, find,
              (shmemx_exchange_t * exchange, const shmemx_exchange_key_t* keys, size_t count, uint64_t layout,
               uint32_t lease_ms, shmemx_exchange_block_t* blocks),
              (exchange, keys, count, layout, lease_ms, blocks))
SHMEM_FORWARD(int, release, (shmemx_exchange_t * exchange, shmemx_exchange_block_t* blocks, size_t count),
              (exchange, blocks, count))
SHMEM_FORWARD(int, pull,
              (shmemx_exchange_t * exchange, const shmemx_exchange_block_t* blocks, void* const* destinations,
               size_t count, int32_t* statuses, shmemx_exchange_transfer_t** transfer),
              (exchange, blocks, destinations, count, statuses, transfer))
SHMEM_FORWARD(int, test, (shmemx_exchange_transfer_t * transfer), (transfer))
SHMEM_FORWARD(int, wait, (shmemx_exchange_transfer_t * transfer, uint64_t timeout_ns), (transfer, timeout_ns))
SHMEM_FORWARD(void, transfer_free, (shmemx_exchange_transfer_t * transfer), (transfer))
SHMEM_FORWARD(int, list,
              (shmemx_exchange_t * exchange, uint32_t seat, uint64_t* cursor, shmemx_exchange_name_t* names,
               shmemx_exchange_block_t* blocks, size_t capacity),
              (exchange, seat, cursor, names, blocks, capacity))
SHMEM_FORWARD(int, hold,
              (const char* name, const shmemx_exchange_options_t* options, const shmemx_exchange_holding_t* holding,
               shmemx_exchange_t** exchange),
              (name, options, holding, exchange))
SHMEM_FORWARD(int, use_holder, (shmemx_exchange_t * exchange, const char* tenant, uint32_t answer_ms),
              (exchange, tenant, answer_ms))
SHMEM_FORWARD(int, put, (shmemx_exchange_t * exchange, shmemx_exchange_put_t* puts, size_t count),
              (exchange, puts, count))
SHMEM_FORWARD(int, discard,
              (shmemx_exchange_t * exchange, const shmemx_exchange_key_t* keys, size_t count, uint64_t layout,
               int32_t* statuses),
              (exchange, keys, count, layout, statuses))
SHMEM_FORWARD(int, discard_all, (shmemx_exchange_t * exchange), (exchange))
SHMEM_FORWARD(int, pin,
              (shmemx_exchange_t * exchange, const shmemx_exchange_key_t* keys, size_t count, uint64_t layout,
               int pinned, int32_t* statuses),
              (exchange, keys, count, layout, pinned, statuses))
SHMEM_FORWARD(int, holder_stats, (shmemx_exchange_t * exchange, shmemx_exchange_holder_stats_t* stats),
              (exchange, stats))
SHMEM_FORWARD(int, events,
              (shmemx_exchange_t * exchange, shmemx_exchange_position_t* position, shmemx_exchange_event_t* events,
               size_t capacity, uint64_t timeout_ns),
              (exchange, position, events, capacity, timeout_ns))
SHMEM_FORWARD(int, plan,
              (const shmemx_exchange_share_t* members, size_t member_count, shmemx_exchange_load_t* loads,
               size_t load_count, double tolerance, shmemx_exchange_move_t* moves, size_t capacity),
              (members, member_count, loads, load_count, tolerance, moves, capacity))
SHMEM_FORWARD(int, stats, (shmemx_exchange_t * exchange, shmemx_exchange_stats_t* stats), (exchange, stats))
SHMEM_FORWARD(int, member_stats, (shmemx_exchange_t * exchange, uint32_t seat, shmemx_exchange_stats_t* stats),
              (exchange, seat, stats))
