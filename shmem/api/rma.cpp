// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, sections 9.6 and 9.7: copies to and from a PE. All PEs are reached by load and store.
#include <cstring>

#include "shmem/api/peer.hpp"
#include "shmem/memory/copy.hpp"
#include "shmem/memory/parking.hpp"
#include "shmemx_interface.h"

using shmem::api::bytes_of;
using shmem::api::Peer;

namespace {

void put_bytes(const Peer& peer, void* dest, const void* source, std::size_t bytes) {
  if (bytes != 0) {
    shmem::copy_bytes(peer.at(dest, bytes), source, bytes);
    shmem::wake_parked(peer.context.job(), peer.pe);
  }
}

void get_bytes(const Peer& peer, void* dest, const void* source, std::size_t bytes) {
  if (bytes != 0) {
    std::memcpy(dest, peer.at(source, bytes), bytes);  // through the cache: it is for this PE to use
  }
}

template <std::size_t Size>
void put(const Peer& peer, void* dest, const void* source, std::size_t nelems) {
  put_bytes(peer, dest, source, bytes_of(peer, nelems, Size));
}

template <std::size_t Size>
void get(const Peer& peer, void* dest, const void* source, std::size_t nelems) {
  get_bytes(peer, dest, source, bytes_of(peer, nelems, Size));
}

// Always inlined: a store, and what it takes to find the place.
template <typename T>
[[gnu::always_inline]] inline void put_one(const Peer& peer, T* dest, T value) {
  auto* theirs = reinterpret_cast<T*>(peer.at(dest, sizeof value));
  if constexpr (sizeof value <= sizeof(std::uint64_t)) {
    __atomic_store(theirs, &value, __ATOMIC_RELAXED);  // whole: the PE may be waiting for it
  } else {
    *theirs = value;
  }
  shmem::wake_parked(peer.context.job(), peer.pe);
}

template <typename T>
[[gnu::always_inline]] inline T get_one(const Peer& peer, const T* source) {
  const auto* theirs = reinterpret_cast<const T*>(peer.at(source, sizeof(T)));
  T value;
  if constexpr (sizeof value <= sizeof(std::uint64_t)) {
    __atomic_load(theirs, &value, __ATOMIC_RELAXED);
  } else {
    value = *theirs;
  }
  return value;
}

/// Blocks of `block` bytes whose beginnings are so many bytes apart.
struct Blocks {
  std::size_t to_step, from_step, block, count;
};

/// From the strides of a call, in elements. Ends the job if they are too small for the block or too large.
Blocks blocks_of(const Peer& peer, std::ptrdiff_t dst, std::ptrdiff_t sst, std::size_t bsize, std::size_t nblocks,
                 std::size_t size) {
  const auto least = static_cast<std::ptrdiff_t>(std::max<std::size_t>(bsize, 1));
  if (nblocks != 0 && (dst < least || sst < least)) {
    shmem::api::end_job(peer.context, peer.call,
                        "strides " + std::to_string(dst) + " and " + std::to_string(sst) + " must be " +
                            std::to_string(least) + " or more");
  }
  bytes_of(peer, nblocks, bytes_of(peer, static_cast<std::size_t>(std::max(dst, sst)), size));
  return {static_cast<std::size_t>(dst) * size, static_cast<std::size_t>(sst) * size, bsize * size, nblocks};
}

/// From the first byte to behind the last one.
std::size_t extent(std::size_t step, const Blocks& blocks) {
  return (blocks.count - 1) * step + blocks.block;
}

template <std::size_t Size>
void copy_elements(std::byte* to, const std::byte* from, const Blocks& blocks) {
  for (std::size_t i = 0; i < blocks.count; ++i) {
    std::memcpy(to + i * blocks.to_step, from + i * blocks.from_step, Size);
  }
}

template <std::size_t Size>
void copy_blocks(std::byte* to, const std::byte* from, const Blocks& blocks) {
  if (blocks.block == Size) {
    copy_elements<Size>(to, from, blocks);
    return;
  }
  for (std::size_t i = 0; i < blocks.count; ++i) {
    std::memcpy(to + i * blocks.to_step, from + i * blocks.from_step, blocks.block);
  }
}

template <std::size_t Size>
void block_put(const Peer& peer, void* dest, const void* source, std::ptrdiff_t dst, std::ptrdiff_t sst,
               std::size_t bsize, std::size_t nblocks) {
  const Blocks blocks = blocks_of(peer, dst, sst, bsize, nblocks, Size);
  if (blocks.count != 0 && blocks.block != 0) {
    copy_blocks<Size>(peer.at(dest, extent(blocks.to_step, blocks)), static_cast<const std::byte*>(source), blocks);
    shmem::wake_parked(peer.context.job(), peer.pe);
  }
}

template <std::size_t Size>
void block_get(const Peer& peer, void* dest, const void* source, std::ptrdiff_t dst, std::ptrdiff_t sst,
               std::size_t bsize, std::size_t nblocks) {
  const Blocks blocks = blocks_of(peer, dst, sst, bsize, nblocks, Size);
  if (blocks.count != 0 && blocks.block != 0) {
    copy_blocks<Size>(static_cast<std::byte*>(dest), peer.at(source, extent(blocks.from_step, blocks)), blocks);
  }
}

template <std::size_t Size>
void strided_put(const Peer& peer, void* dest, const void* source, std::ptrdiff_t dst, std::ptrdiff_t sst,
                 std::size_t nelems) {
  block_put<Size>(peer, dest, source, dst, sst, 1, nelems);
}

template <std::size_t Size>
void strided_get(const Peer& peer, void* dest, const void* source, std::ptrdiff_t dst, std::ptrdiff_t sst,
                 std::size_t nelems) {
  block_get<Size>(peer, dest, source, dst, sst, 1, nelems);
}

}  // namespace

// The routines of one kind of element. A copy is complete when the call returns, so that _nbi does the same.
#define SHMEM_DEFINE_RMA(PREFIX, SUFFIX, TYPE, SIZE)                                                                \
  SHMEM_ROUTINE_WITH_CTX(void, PREFIX##put##SUFFIX, (TYPE * dest, const TYPE* source, size_t nelems, int pe),       \
                         put<SIZE>, (dest, source, nelems))                                                         \
  SHMEM_ROUTINE_WITH_CTX(void, PREFIX##get##SUFFIX, (TYPE * dest, const TYPE* source, size_t nelems, int pe),       \
                         get<SIZE>, (dest, source, nelems))                                                         \
  SHMEM_ROUTINE_WITH_CTX(void, PREFIX##put##SUFFIX##_nbi, (TYPE * dest, const TYPE* source, size_t nelems, int pe), \
                         put<SIZE>, (dest, source, nelems))                                                         \
  SHMEM_ROUTINE_WITH_CTX(void, PREFIX##get##SUFFIX##_nbi, (TYPE * dest, const TYPE* source, size_t nelems, int pe), \
                         get<SIZE>, (dest, source, nelems))                                                         \
  SHMEM_ROUTINE_WITH_CTX(void, PREFIX##iput##SUFFIX,                                                                \
                         (TYPE * dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),    \
                         strided_put<SIZE>, (dest, source, dst, sst, nelems))                                       \
  SHMEM_ROUTINE_WITH_CTX(void, PREFIX##iget##SUFFIX,                                                                \
                         (TYPE * dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),    \
                         strided_get<SIZE>, (dest, source, dst, sst, nelems))                                       \
  SHMEM_ROUTINE_WITH_CTX(                                                                                           \
      void, PREFIX##ibput##SUFFIX,                                                                                  \
      (TYPE * dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe),        \
      block_put<SIZE>, (dest, source, dst, sst, bsize, nblocks))                                                    \
  SHMEM_ROUTINE_WITH_CTX(                                                                                           \
      void, PREFIX##ibget##SUFFIX,                                                                                  \
      (TYPE * dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe),        \
      block_get<SIZE>, (dest, source, dst, sst, bsize, nblocks))

#define SHMEM_DEFINE_TYPED(NAME, TYPE)                                                              \
  SHMEM_DEFINE_RMA(NAME##_, , TYPE, sizeof(TYPE))                                                   \
  SHMEM_ROUTINE_WITH_CTX(void, NAME##_p, (TYPE * dest, TYPE value, int pe), put_one, (dest, value)) \
  SHMEM_ROUTINE_WITH_CTX(TYPE, NAME##_g, (const TYPE* source, int pe), get_one, (source))
#define SHMEM_DEFINE_SIZED(BITS, BYTES) SHMEM_DEFINE_RMA(, BITS, void, BYTES)

SHMEM_RMA_TYPES(SHMEM_DEFINE_TYPED)
SHMEM_SIZES(SHMEM_DEFINE_SIZED)

SHMEM_ROUTINE_WITH_CTX(void, putmem, (void* dest, const void* source, size_t nelems, int pe), put_bytes,
                       (dest, source, nelems))
SHMEM_ROUTINE_WITH_CTX(void, getmem, (void* dest, const void* source, size_t nelems, int pe), get_bytes,
                       (dest, source, nelems))
SHMEM_ROUTINE_WITH_CTX(void, putmem_nbi, (void* dest, const void* source, size_t nelems, int pe), put_bytes,
                       (dest, source, nelems))
SHMEM_ROUTINE_WITH_CTX(void, getmem_nbi, (void* dest, const void* source, size_t nelems, int pe), get_bytes,
                       (dest, source, nelems))

// Under other names: the size of an element is an argument.
namespace {

struct SixteenBytes {
  std::uint64_t low, high;
};

/// Calls `act` with a word of that size. Ends the job if there is none.
template <typename Act>
void with_word(const Peer& peer, std::size_t size, Act act) {
  switch (size) {
    case 1:
      return act(std::uint8_t{});
    case 2:
      return act(std::uint16_t{});
    case 4:
      return act(std::uint32_t{});
    case 8:
      return act(std::uint64_t{});
    case 16:
      return act(SixteenBytes{});
    default:
      shmem::api::end_job(peer.context, peer.call, "there are no elements of " + std::to_string(size) + " bytes");
  }
}

Peer peer_after_stream(const char* call, int pe) {
  shmemx_await_default_stream();
  return shmem::api::peer(call, pe);
}

}  // namespace

extern "C" {

void shmemx_put_elements(const char* call, void* dest, const void* source, size_t nelems, size_t size,
                         int pe) noexcept {
  const Peer to = peer_after_stream(call, pe);
  put_bytes(to, dest, source, bytes_of(to, nelems, size));
}

void shmemx_get_elements(const char* call, void* dest, const void* source, size_t nelems, size_t size,
                         int pe) noexcept {
  const Peer from = peer_after_stream(call, pe);
  get_bytes(from, dest, source, bytes_of(from, nelems, size));
}

void shmemx_put_blocks(const char* call, void* dest, const void* source, const shmemx_blocks_t* blocks,
                       int pe) noexcept {
  const Peer to = peer_after_stream(call, pe);
  with_word(to, blocks->size, [&](auto word) {
    block_put<sizeof word>(to, dest, source, blocks->dst, blocks->sst, blocks->bsize, blocks->nblocks);
  });
}

void shmemx_get_blocks(const char* call, void* dest, const void* source, const shmemx_blocks_t* blocks,
                       int pe) noexcept {
  const Peer from = peer_after_stream(call, pe);
  with_word(from, blocks->size, [&](auto word) {
    block_get<sizeof word>(from, dest, source, blocks->dst, blocks->sst, blocks->bsize, blocks->nblocks);
  });
}

void shmemx_put_one(const char* call, void* dest, const void* value, size_t size, int pe) noexcept {
  const Peer to = peer_after_stream(call, pe);
  with_word(to, size, [&](auto word) {
    std::memcpy(&word, value, sizeof word);
    put_one(to, static_cast<decltype(word)*>(dest), word);
  });
}

void shmemx_get_one(const char* call, void* value, const void* source, size_t size, int pe) noexcept {
  const Peer from = peer_after_stream(call, pe);
  with_word(from, size, [&](auto word) {
    word = get_one(from, static_cast<const decltype(word)*>(source));
    std::memcpy(value, &word, sizeof word);
  });
}
}
