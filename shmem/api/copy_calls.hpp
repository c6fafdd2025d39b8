// SPDX-License-Identifier: Apache-2.0
// The bodies of calls that copy (OpenSHMEM 1.6, section 9.6): by load and store on this node, through the
// network between nodes (remote.hpp).
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "shmem/api/copied.hpp"
#include "shmem/api/peer.hpp"
#include "shmem/memory/cached_copy.hpp"
#include "shmem/memory/copy.hpp"

namespace shmem::api {

// Most calls copy a few bytes within the symmetric heap. To keep that path to one comparison and the copy, everything
// else is in functions called at the end: nothing is saved on the stack.

/// Up to 16 bytes at any alignment; an 8-byte word as a whole.
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

template <Done When>
[[gnu::noinline]] void put_many(const Runtime& runtime, const char* call, int pe, void* dest, const void* source,
                                std::size_t bytes) {
  const Peer peer(Target{runtime, call, pe});
  peer.count(CallKind::kPut, bytes);
  if (peer.is_remote()) {
    remote_put(peer, dest, source, bytes, When);
  } else if (bytes != 0) {
    std::byte* const theirs = peer.at_if_mapped(dest, bytes, source);
    if (theirs == nullptr) [[unlikely]] {
      put_copied(peer, dest, source, {.block = bytes});
      return;
    }
    copy_bytes(theirs, source, bytes);
    peer.wake();
  }
}

template <Done When>
[[gnu::noinline]] void get_many(const Runtime& runtime, const char* call, int pe, void* dest, const void* source,
                                std::size_t bytes) {
  const Peer peer(Target{runtime, call, pe});
  peer.count(CallKind::kGet, bytes);
  if (peer.is_remote()) {
    remote_get(peer, dest, source, bytes, When);
  } else if (bytes != 0) {
    const std::byte* const theirs = peer.at_if_mapped(source, bytes, dest);
    if (theirs == nullptr) [[unlikely]] {
      get_copied(peer, dest, source, {.block = bytes});
      return;
    }
    // Through the cache: this PE is about to use it.
    copy_cached(dest, theirs, bytes);
    progress(runtime);
  }
}

template <Done When = Done::kNow>
[[gnu::always_inline]] inline void put_bytes(const Target& target, void* dest, const void* source, std::size_t bytes) {
  if (!Target::in_heap(dest, bytes) || bytes > kFew) {
    put_many<When>(target.runtime, target.call, target.pe, dest, source, bytes);
    return;
  }
  copy_few(target.in_its_heap(dest), source, bytes);
  target.wake();
}

template <Done When = Done::kNow>
[[gnu::always_inline]] inline void get_bytes(const Target& target, void* dest, const void* source, std::size_t bytes) {
  if (!Target::in_heap(source, bytes) || bytes > kFew) {
    get_many<When>(target.runtime, target.call, target.pe, dest, source, bytes);
    return;
  }
  copy_few(dest, target.in_its_heap(source), bytes);
}

template <std::size_t Size>
[[gnu::always_inline]] inline void put(const Target& target, void* dest, const void* source, std::size_t nelems) {
  put_bytes(target, dest, source, bytes_of(target, nelems, Size));
}

template <std::size_t Size>
[[gnu::always_inline]] inline void get(const Target& target, void* dest, const void* source, std::size_t nelems) {
  get_bytes(target, dest, source, bytes_of(target, nelems, Size));
}

template <std::size_t Size>
[[gnu::always_inline]] inline void start_put(const Target& target, void* dest, const void* source, std::size_t nelems) {
  put_bytes<Done::kWithQuiet>(target, dest, source, bytes_of(target, nelems, Size));
}

template <std::size_t Size>
[[gnu::always_inline]] inline void start_get(const Target& target, void* dest, const void* source, std::size_t nelems) {
  get_bytes<Done::kWithQuiet>(target, dest, source, bytes_of(target, nelems, Size));
}

template <typename T>
[[gnu::always_inline]] inline void store(std::byte* theirs, T value) {
  if constexpr (sizeof value <= sizeof(std::uint64_t)) {
    __atomic_store(reinterpret_cast<T*>(theirs), &value, __ATOMIC_RELAXED);  // as a whole: the PE may be waiting for it
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

/// For addresses outside the heap.
template <typename T>
[[gnu::noinline]] inline void put_elsewhere(const Runtime& runtime, const char* call, int pe, T* dest, T value) {
  const Peer peer(Target{runtime, call, pe});
  peer.count(CallKind::kPut, sizeof value);
  if (peer.is_remote()) {
    remote_put(peer, dest, &value, sizeof value);
    return;
  }
  std::byte* const theirs = peer.at_if_mapped(dest, sizeof value);
  if (theirs == nullptr) [[unlikely]] {
    put_copied(peer, dest, &value, {.block = sizeof value});
    return;
  }
  store(theirs, value);
  peer.wake();
}
template <typename T>
[[gnu::noinline]] T get_elsewhere(const Runtime& runtime, const char* call, int pe, const T* source) {
  const Peer peer(Target{runtime, call, pe});
  peer.count(CallKind::kGet, sizeof(T));
  if (peer.is_remote()) {
    T value;
    remote_get(peer, &value, source, sizeof value);
    return value;
  }
  progress(runtime);
  const std::byte* const theirs = peer.at_if_mapped(source, sizeof(T));
  if (theirs == nullptr) [[unlikely]] {
    T value;
    get_copied(peer, &value, source, {.block = sizeof value});
    return value;
  }
  return load<T>(theirs);
}

template <typename T>
[[gnu::always_inline]] inline void put_one(const Target& target, T* dest, T value) {
  if (!Target::in_heap(dest, sizeof value)) [[unlikely]] {
    put_elsewhere(target.runtime, target.call, target.pe, dest, value);
    return;
  }
  store(target.in_its_heap(dest), value);
  target.wake();
}

template <typename T>
[[gnu::always_inline]] inline T get_one(const Target& target, const T* source) {
  if (!Target::in_heap(source, sizeof(T))) [[unlikely]] {
    return get_elsewhere(target.runtime, target.call, target.pe, source);
  }
  return load<T>(target.in_its_heap(source));
}

/// Blocks of `block` bytes; `to_step` and `from_step` are the distances between their starts.
struct Blocks {
  std::size_t to_step, from_step, block, count;
};

/// From the strides of a call, in elements. Ends the job if they are too small for the block or too large.
inline Blocks blocks_of(const Target& target, std::ptrdiff_t dst, std::ptrdiff_t sst, std::size_t bsize,
                        std::size_t nblocks, std::size_t size) {
  const auto least = static_cast<std::ptrdiff_t>(std::max<std::size_t>(bsize, 1));
  if (nblocks != 0 && (dst < least || sst < least)) {
    end_job(target.runtime, target.call, "strides {} and {} must be {} or more", dst, sst, least);
  }
  bytes_of(target, nblocks, bytes_of(target, static_cast<std::size_t>(std::max(dst, sst)), size));
  return {static_cast<std::size_t>(dst) * size, static_cast<std::size_t>(sst) * size, bsize * size, nblocks};
}

/// From the first byte to the end of the last block.
inline std::size_t extent(std::size_t step, const Blocks& blocks) {
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
    copy_cached(to + i * blocks.to_step, from + i * blocks.from_step, blocks.block);
  }
}

/// Each block is a separate copy; fetches are in flight together.
inline void remote_block_put(const Peer& peer, void* dest, const void* source, const Blocks& blocks) {
  for (std::size_t i = 0; i < blocks.count; ++i) {
    remote_put(peer, static_cast<std::byte*>(dest) + i * blocks.to_step,
               static_cast<const std::byte*>(source) + i * blocks.from_step, blocks.block, Done::kNow);
  }
}
inline void remote_block_get(const Peer& peer, void* dest, const void* source, const Blocks& blocks) {
  for (std::size_t i = 0; i < blocks.count; ++i) {
    remote_get(peer, static_cast<std::byte*>(dest) + i * blocks.to_step,
               static_cast<const std::byte*>(source) + i * blocks.from_step, blocks.block, Done::kWithQuiet);
  }
  remote_quiet(PeChoice(peer.pe));
}

template <std::size_t Size>
void block_put(const Target& target, void* dest, const void* source, std::ptrdiff_t dst, std::ptrdiff_t sst,
               std::size_t bsize, std::size_t nblocks) {
  const Peer peer(target);
  const Blocks blocks = blocks_of(target, dst, sst, bsize, nblocks, Size);
  peer.count(CallKind::kPut, blocks.count * blocks.block);
  if (blocks.count != 0 && blocks.block != 0) {
    peer.check_own(source, extent(blocks.from_step, blocks));
    if (peer.is_remote()) {
      remote_block_put(peer, dest, source, blocks);
      return;
    }
    std::byte* const theirs = peer.at_if_mapped(dest, extent(blocks.to_step, blocks));
    if (theirs == nullptr) [[unlikely]] {
      put_copied(peer, dest, source, {blocks.from_step, blocks.to_step, blocks.block, blocks.count});
      return;
    }
    copy_blocks<Size>(theirs, static_cast<const std::byte*>(source), blocks);
    peer.wake();
  }
}

template <std::size_t Size>
void block_get(const Target& target, void* dest, const void* source, std::ptrdiff_t dst, std::ptrdiff_t sst,
               std::size_t bsize, std::size_t nblocks) {
  const Peer peer(target);
  const Blocks blocks = blocks_of(target, dst, sst, bsize, nblocks, Size);
  peer.count(CallKind::kGet, blocks.count * blocks.block);
  if (blocks.count != 0 && blocks.block != 0) {
    peer.check_own(dest, extent(blocks.to_step, blocks));
    if (peer.is_remote()) {
      remote_block_get(peer, dest, source, blocks);
      return;
    }
    const std::byte* const theirs = peer.at_if_mapped(source, extent(blocks.from_step, blocks));
    if (theirs == nullptr) [[unlikely]] {
      get_copied(peer, dest, source, {blocks.to_step, blocks.from_step, blocks.block, blocks.count});
      return;
    }
    copy_blocks<Size>(static_cast<std::byte*>(dest), theirs, blocks);
  }
}

template <std::size_t Size>
void strided_put(const Target& target, void* dest, const void* source, std::ptrdiff_t dst, std::ptrdiff_t sst,
                 std::size_t nelems) {
  block_put<Size>(target, dest, source, dst, sst, 1, nelems);
}

template <std::size_t Size>
void strided_get(const Target& target, void* dest, const void* source, std::ptrdiff_t dst, std::ptrdiff_t sst,
                 std::size_t nelems) {
  block_get<Size>(target, dest, source, dst, sst, 1, nelems);
}

}  // namespace shmem::api
