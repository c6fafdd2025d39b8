// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, sections 9.6 and 9.7: copies to and from a PE: by load and store on this node, by the network on
// others (far.hpp).
#include <cstring>
#include <span>

#include "shmem/api/peer.hpp"
#include "shmem/memory/copy.hpp"
#include "shmemx_interface.h"

using shmem::Context;
using shmem::api::bytes_of;
using shmem::api::Done;
using shmem::api::far_get;
using shmem::api::far_put;
using shmem::api::known_peer;
using shmem::api::Peer;

namespace {

// Most calls are for the symmetric heap, and many for few bytes. That they need no more than a comparison and a copy of
// their own, the rest is in functions of its own, which are called at the end: nothing is saved on the stack.

/// Up to 16 bytes, which need not be aligned; a word of 8 bytes as a whole.
[[gnu::always_inline]] inline void copy_few(void* dest, const void* source, std::size_t bytes) {
  const auto copy = [=]<typename Word>(Word /*of which the first and the last cover all*/)
      __attribute__((always_inline)) {
    Word first;
    Word last;
    std::memcpy(&first, source, sizeof first);
    std::memcpy(&last, static_cast<const std::byte*>(source) + bytes - sizeof last, sizeof last);
    std::memcpy(dest, &first, sizeof first);
    std::memcpy(static_cast<std::byte*>(dest) + bytes - sizeof last, &last, sizeof last);
  };
  if (bytes >= sizeof(std::uint64_t)) {
    copy(std::uint64_t{});
  } else if (bytes >= sizeof(std::uint32_t)) {
    copy(std::uint32_t{});
  } else if (bytes >= sizeof(std::uint16_t)) {
    copy(std::uint16_t{});
  } else if (bytes == 1) {
    copy(std::uint8_t{});
  }
}
constexpr std::size_t kFew = 16;

[[gnu::noinline]] void put_many(const Context& context, const char* call, int pe, void* dest, const void* source,
                                std::size_t bytes, Done done) {
  const Peer peer = known_peer(context, call, pe);
  if (peer.is_far()) {
    far_put(peer, dest, source, bytes, done);
  } else if (bytes != 0) {
    shmem::copy_bytes(peer.at(dest, bytes, source), source, bytes);
    peer.wake();
  }
}

[[gnu::noinline]] void get_many(const Context& context, const char* call, int pe, void* dest, const void* source,
                                std::size_t bytes, Done done) {
  const Peer peer = known_peer(context, call, pe);
  if (peer.is_far()) {
    far_get(peer, dest, source, bytes, done);
  } else if (bytes != 0) {
    // Through the cache: it is for this PE to use.
    std::memcpy(dest, peer.at(source, bytes, dest), bytes);
  }
}

template <Done When = Done::kNow>
[[gnu::always_inline]] inline void put_bytes(const Peer& peer, void* dest, const void* source, std::size_t bytes) {
  if (!Peer::in_heap(dest, bytes) || bytes > kFew) {
    put_many(peer.context, peer.call, peer.pe, dest, source, bytes, When);
    return;
  }
  copy_few(peer.in_its_heap(dest), source, bytes);
  peer.wake();
}

template <Done When = Done::kNow>
[[gnu::always_inline]] inline void get_bytes(const Peer& peer, void* dest, const void* source, std::size_t bytes) {
  if (!Peer::in_heap(source, bytes) || bytes > kFew) {
    get_many(peer.context, peer.call, peer.pe, dest, source, bytes, When);
    return;
  }
  copy_few(dest, peer.in_its_heap(source), bytes);
}

template <std::size_t Size>
[[gnu::always_inline]] inline void put(const Peer& peer, void* dest, const void* source, std::size_t nelems) {
  put_bytes(peer, dest, source, bytes_of(peer, nelems, Size));
}

template <std::size_t Size>
[[gnu::always_inline]] inline void get(const Peer& peer, void* dest, const void* source, std::size_t nelems) {
  get_bytes(peer, dest, source, bytes_of(peer, nelems, Size));
}

template <std::size_t Size>
[[gnu::always_inline]] inline void start_put(const Peer& peer, void* dest, const void* source, std::size_t nelems) {
  put_bytes<Done::kWithQuiet>(peer, dest, source, bytes_of(peer, nelems, Size));
}

template <std::size_t Size>
[[gnu::always_inline]] inline void start_get(const Peer& peer, void* dest, const void* source, std::size_t nelems) {
  get_bytes<Done::kWithQuiet>(peer, dest, source, bytes_of(peer, nelems, Size));
}

template <typename T>
[[gnu::always_inline]] inline void store(std::byte* theirs, T value) {
  if constexpr (sizeof value <= sizeof(std::uint64_t)) {
    __atomic_store(reinterpret_cast<T*>(theirs), &value, __ATOMIC_RELAXED);  // whole: the PE may be waiting for it
  } else {
    *reinterpret_cast<T*>(theirs) = value;
  }
}
template <typename T>
[[gnu::always_inline]] inline T load(const std::byte* theirs) {
  T value;
  if constexpr (sizeof value <= sizeof(std::uint64_t)) {
    __atomic_load(reinterpret_cast<const T*>(theirs), &value, __ATOMIC_RELAXED);
  } else {
    value = *reinterpret_cast<const T*>(theirs);
  }
  return value;
}

/// Not in the heap.
template <typename T>
[[gnu::noinline]] void put_elsewhere(const Context& context, const char* call, int pe, T* dest, T value) {
  const Peer peer = known_peer(context, call, pe);
  if (peer.is_far()) {
    far_put(peer, dest, &value, sizeof value);
    return;
  }
  store(peer.at(dest, sizeof value), value);
  peer.wake();
}
template <typename T>
[[gnu::noinline]] T get_elsewhere(const Context& context, const char* call, int pe, const T* source) {
  const Peer peer = known_peer(context, call, pe);
  if (peer.is_far()) {
    T value;
    far_get(peer, &value, source, sizeof value);
    return value;
  }
  return load<T>(peer.at(source, sizeof(T)));
}

template <typename T>
[[gnu::always_inline]] inline void put_one(const Peer& peer, T* dest, T value) {
  if (!Peer::in_heap(dest, sizeof value)) [[unlikely]] {
    put_elsewhere(peer.context, peer.call, peer.pe, dest, value);
    return;
  }
  store(peer.in_its_heap(dest), value);
  peer.wake();
}

template <typename T>
[[gnu::always_inline]] inline T get_one(const Peer& peer, const T* source) {
  if (!Peer::in_heap(source, sizeof(T))) [[unlikely]] {
    return get_elsewhere(peer.context, peer.call, peer.pe, source);
  }
  return load<T>(peer.in_its_heap(source));
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

/// Each block is a copy of its own; those that are fetched are on their way at once.
void far_block_put(const Peer& peer, void* dest, const void* source, const Blocks& blocks) {
  for (std::size_t i = 0; i < blocks.count; ++i) {
    far_put(peer, static_cast<std::byte*>(dest) + i * blocks.to_step,
            static_cast<const std::byte*>(source) + i * blocks.from_step, blocks.block, Done::kNow);
  }
}
void far_block_get(const Peer& peer, void* dest, const void* source, const Blocks& blocks) {
  for (std::size_t i = 0; i < blocks.count; ++i) {
    far_get(peer, static_cast<std::byte*>(dest) + i * blocks.to_step,
            static_cast<const std::byte*>(source) + i * blocks.from_step, blocks.block, Done::kWithQuiet);
  }
  shmem::api::far_quiet();
}

template <std::size_t Size>
void block_put(const Peer& peer, void* dest, const void* source, std::ptrdiff_t dst, std::ptrdiff_t sst,
               std::size_t bsize, std::size_t nblocks) {
  const Blocks blocks = blocks_of(peer, dst, sst, bsize, nblocks, Size);
  if (blocks.count != 0 && blocks.block != 0) {
    peer.check_own(source, extent(blocks.from_step, blocks));
    if (peer.is_far()) {
      far_block_put(peer, dest, source, blocks);
      return;
    }
    copy_blocks<Size>(peer.at(dest, extent(blocks.to_step, blocks)), static_cast<const std::byte*>(source), blocks);
    peer.wake();
  }
}

template <std::size_t Size>
void block_get(const Peer& peer, void* dest, const void* source, std::ptrdiff_t dst, std::ptrdiff_t sst,
               std::size_t bsize, std::size_t nblocks) {
  const Blocks blocks = blocks_of(peer, dst, sst, bsize, nblocks, Size);
  if (blocks.count != 0 && blocks.block != 0) {
    peer.check_own(dest, extent(blocks.to_step, blocks));
    if (peer.is_far()) {
      far_block_get(peer, dest, source, blocks);
      return;
    }
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

// The routines of one kind of element. On this node a copy is complete when the call returns, _nbi or not.
#define SHMEM_DEFINE_RMA(PREFIX, SUFFIX, TYPE, SIZE)                                                                \
  SHMEM_ROUTINE_WITH_CTX(void, PREFIX##put##SUFFIX, (TYPE * dest, const TYPE* source, size_t nelems, int pe),       \
                         put<SIZE>, (dest, source, nelems))                                                         \
  SHMEM_ROUTINE_WITH_CTX(void, PREFIX##get##SUFFIX, (TYPE * dest, const TYPE* source, size_t nelems, int pe),       \
                         get<SIZE>, (dest, source, nelems))                                                         \
  SHMEM_ROUTINE_WITH_CTX(void, PREFIX##put##SUFFIX##_nbi, (TYPE * dest, const TYPE* source, size_t nelems, int pe), \
                         start_put<SIZE>, (dest, source, nelems))                                                   \
  SHMEM_ROUTINE_WITH_CTX(void, PREFIX##get##SUFFIX##_nbi, (TYPE * dest, const TYPE* source, size_t nelems, int pe), \
                         start_get<SIZE>, (dest, source, nelems))                                                   \
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
SHMEM_ROUTINE_WITH_CTX(void, putmem_nbi, (void* dest, const void* source, size_t nelems, int pe), start_put<1>,
                       (dest, source, nelems))
SHMEM_ROUTINE_WITH_CTX(void, getmem_nbi, (void* dest, const void* source, size_t nelems, int pe), start_get<1>,
                       (dest, source, nelems))

// Under other names: the size of an element is an argument.
namespace {

struct SixteenBytes {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
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

/// Copies a block of `bytes` by way of `scratch`: copy(to, from, bytes) takes it there, and again(...) from there on.
template <typename Copy, typename Again>
void stage(std::byte* to, const std::byte* from, std::size_t bytes, std::span<std::byte> scratch, Copy copy,
           Again again) {
  while (bytes != 0) {
    const std::size_t part = std::min(bytes, scratch.size());
    copy(scratch.data(), from, part);
    again(to, scratch.data(), part);
    to += part;
    from += part;
    bytes -= part;
  }
}

/// The scratch of a call; ends the job if it has no room for an element.
std::span<std::byte> scratch_of(const Peer& peer, void* scratch, std::size_t scratch_size, std::size_t size) {
  if (scratch_size < size) {
    shmem::api::end_job(
        peer.context, peer.call,
        std::to_string(scratch_size) + " bytes of scratch have no room for an element of " + std::to_string(size));
  }
  return {static_cast<std::byte*>(shmemx_scratch(scratch)), scratch_size / size * size};
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
void shmemx_put_staged(const char* call, void* dest, const void* source, const shmemx_blocks_t* blocks, void* scratch,
                       size_t scratch_size, int pe) noexcept {
  const Peer to = peer_after_stream(call, pe);
  const Blocks all = blocks_of(to, blocks->dst, blocks->sst, blocks->bsize, blocks->nblocks, blocks->size);
  const auto through = scratch_of(to, scratch, scratch_size, blocks->size);
  if (all.count == 0 || all.block == 0) {
    return;
  }
  if (to.is_far()) {
    far_block_put(to, dest, source, all);
    return;
  }
  std::byte* theirs = to.at(dest, extent(all.to_step, all));
  for (std::size_t i = 0; i < all.count; ++i) {
    stage(theirs + i * all.to_step, static_cast<const std::byte*>(source) + i * all.from_step, all.block, through,
          std::memcpy, shmem::copy_bytes);
  }
  to.wake();
}

void shmemx_get_staged(const char* call, void* dest, const void* source, const shmemx_blocks_t* blocks, void* scratch,
                       size_t scratch_size, int pe) noexcept {
  const Peer from = peer_after_stream(call, pe);
  const Blocks all = blocks_of(from, blocks->dst, blocks->sst, blocks->bsize, blocks->nblocks, blocks->size);
  const auto through = scratch_of(from, scratch, scratch_size, blocks->size);
  if (all.count == 0 || all.block == 0) {
    return;
  }
  if (from.is_far()) {
    far_block_get(from, dest, source, all);
    return;
  }
  const std::byte* theirs = from.at(source, extent(all.from_step, all));
  for (std::size_t i = 0; i < all.count; ++i) {
    stage(static_cast<std::byte*>(dest) + i * all.to_step, theirs + i * all.from_step, all.block, through, std::memcpy,
          std::memcpy);
  }
}
}
