// SPDX-License-Identifier: Apache-2.0
// Copies with the size of an element as an argument, for interfaces with names of their own.
#include <span>

#include "shmem/api/copy_calls.hpp"
#include "shmem/memory/cached_copy.hpp"
#include "shmemx_interface.h"

using namespace shmem::api;  // NOLINT(google-build-using-namespace): the bodies of the calls, all of them

namespace {

struct SixteenBytes {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

/// Calls `act` with a word of that size. Ends the job if there is no such word.
template <typename Act>
void with_word(const Target& peer, std::size_t size, Act act) {
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
      end_job(peer.runtime, peer.call, "there are no elements of {} bytes", size);
  }
}

/// Copies `bytes` through `scratch`: copy(to, from, bytes) into it, again(...) out of it.
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

/// The scratch of a call; ends the job if an element does not fit.
std::span<std::byte> scratch_of(const Target& peer, void* scratch, std::size_t scratch_size, std::size_t size) {
  if (scratch_size < size) {
    end_job(peer.runtime, peer.call, "{} bytes of scratch have no room for an element of {}", scratch_size, size);
  }
  return {static_cast<std::byte*>(shmemx_scratch(scratch)), scratch_size / size * size};
}

Target peer_after_stream(const char* call, int pe) {
  shmemx_await_default_stream();
  return shmem::api::peer(call, pe);
}

}  // namespace

extern "C" {

void shmemx_put_elements(const char* call, void* dest, const void* source, size_t nelems, size_t size, int pe) noexcept
    try {
  const Target to = peer_after_stream(call, pe);
  put_bytes(to, dest, source, bytes_of(to, nelems, size));
}
SHMEM_CATCH(void)

void shmemx_get_elements(const char* call, void* dest, const void* source, size_t nelems, size_t size, int pe) noexcept
    try {
  const Target from = peer_after_stream(call, pe);
  get_bytes(from, dest, source, bytes_of(from, nelems, size));
}
SHMEM_CATCH(void)

void shmemx_put_blocks(const char* call, void* dest, const void* source, const shmemx_blocks_t* blocks, int pe) noexcept
    try {
  const Target to = peer_after_stream(call, pe);
  with_word(to, blocks->size, [&](auto word) {
    block_put<sizeof word>(to, dest, source, blocks->dst, blocks->sst, blocks->bsize, blocks->nblocks);
  });
}
SHMEM_CATCH(void)

void shmemx_get_blocks(const char* call, void* dest, const void* source, const shmemx_blocks_t* blocks, int pe) noexcept
    try {
  const Target from = peer_after_stream(call, pe);
  with_word(from, blocks->size, [&](auto word) {
    block_get<sizeof word>(from, dest, source, blocks->dst, blocks->sst, blocks->bsize, blocks->nblocks);
  });
}
SHMEM_CATCH(void)

void shmemx_put_one(const char* call, void* dest, const void* value, size_t size, int pe) noexcept try {
  const Target to = peer_after_stream(call, pe);
  with_word(to, size, [&](auto word) {
    std::memcpy(&word, value, sizeof word);
    put_one(to, static_cast<decltype(word)*>(dest), word);
  });
}
SHMEM_CATCH(void)

void shmemx_get_one(const char* call, void* value, const void* source, size_t size, int pe) noexcept try {
  const Target from = peer_after_stream(call, pe);
  with_word(from, size, [&](auto word) {
    word = get_one(from, static_cast<const decltype(word)*>(source));
    std::memcpy(value, &word, sizeof word);
  });
}
SHMEM_CATCH(void)
void shmemx_put_staged(const char* call, void* dest, const void* source, const shmemx_blocks_t* blocks, void* scratch,
                       size_t scratch_size, int pe) noexcept try {
  const Peer to(peer_after_stream(call, pe));
  const Blocks all = blocks_of(to, blocks->dst, blocks->sst, blocks->bsize, blocks->nblocks, blocks->size);
  const auto through = scratch_of(to, scratch, scratch_size, blocks->size);
  if (all.count == 0 || all.block == 0) {
    return;
  }
  if (to.is_remote()) {
    remote_block_put(to, dest, source, all);
    return;
  }
  std::byte* theirs = to.at_if_mapped(dest, extent(all.to_step, all));
  if (theirs == nullptr) {
    put_copied(to, dest, source, {all.from_step, all.to_step, all.block, all.count});
    return;
  }
  for (std::size_t i = 0; i < all.count; ++i) {
    stage(theirs + i * all.to_step, static_cast<const std::byte*>(source) + i * all.from_step, all.block, through,
          shmem::copy_cached, shmem::copy_bytes);
  }
  to.wake();
}
SHMEM_CATCH(void)

void shmemx_get_staged(const char* call, void* dest, const void* source, const shmemx_blocks_t* blocks, void* scratch,
                       size_t scratch_size, int pe) noexcept try {
  const Peer from(peer_after_stream(call, pe));
  const Blocks all = blocks_of(from, blocks->dst, blocks->sst, blocks->bsize, blocks->nblocks, blocks->size);
  const auto through = scratch_of(from, scratch, scratch_size, blocks->size);
  if (all.count == 0 || all.block == 0) {
    return;
  }
  if (from.is_remote()) {
    remote_block_get(from, dest, source, all);
    return;
  }
  const std::byte* theirs = from.at_if_mapped(source, extent(all.from_step, all));
  if (theirs == nullptr) {
    get_copied(from, dest, source, {all.to_step, all.from_step, all.block, all.count});
    return;
  }
  for (std::size_t i = 0; i < all.count; ++i) {
    stage(static_cast<std::byte*>(dest) + i * all.to_step, theirs + i * all.from_step, all.block, through,
          shmem::copy_cached, shmem::copy_cached);
  }
}
SHMEM_CATCH(void)
}
