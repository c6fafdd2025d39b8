// SPDX-License-Identifier: Apache-2.0
// What a member does in a collective call once it may read what the others give: it takes blocks, combines a share of
// all members' data, and fetches the shares that the others have combined. The same for teams and for groups, wherever
// the data is: the callers say where, and when the members meet.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>

#include "shmem/memory/cached_copy.hpp"

namespace shmem {

/// Combines two elements: first[i] = first[i] OP second[i]. The two do not overlap.
struct Reduction {
  std::size_t element;  // bytes: 1 to 16, a power of two
  void (*combine)(void* first, const void* second, std::size_t count);
};

/// The bytes that share `i` of `shares` covers: whole cache lines, so that no two members write the same line, and so
/// whole elements.
struct Share {
  std::size_t begin, size;
};
inline Share share_of(int i, int shares, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  const std::size_t lines = (bytes + kLine - 1) / kLine;
  const auto edge = [&](int which) {
    return std::min(bytes, lines * static_cast<std::size_t>(which) / static_cast<std::size_t>(shares) * kLine);
  };
  return {edge(i), edge(i + 1) - edge(i)};
}

/// The bytes of a piece of up to `most` bytes from `offset` on.
inline std::size_t piece_of(std::size_t bytes, std::size_t offset, std::size_t most) {
  return bytes > offset ? std::min(most, bytes - offset) : 0;
}

/// The memory may be missing if there is nothing to copy, and overlap.
inline void move_bytes(void* to, const void* from, std::size_t size) {
  move_cached(to, from, size);
}

/// The same without a share, which no other member reads. Returns the bytes that it has copied.
inline std::size_t move_around(std::byte* to, const std::byte* from, std::size_t size, const Share& share) {
  const std::size_t end = share.begin + share.size;
  move_bytes(to, from, share.begin);
  move_bytes(to + end, from + end, size - end);
  return size - share.size;
}

/// Calls work(member) for the members from `first` places to the right of `me` on, up to the one to its left: not all
/// read the same member's memory at once. If work returns a Result, an Error ends it.
template <typename Work>
auto to_the_right(int me, int members, int first, Work work) {
  using Made = decltype(work(me));
  if constexpr (std::is_void_v<Made>) {
    for (int distance = first; distance < members; ++distance) {
      work((me + distance) % members);
    }
  } else {
    Made ok;
    for (int distance = first; ok && distance < members; ++distance) {
      ok = work((me + distance) % members);
    }
    return ok;
  }
}

/// Each member has combined its share of `bytes`: calls fetch(member, share) for those of the others; `first` as above.
template <typename Fetch>
auto fetch_shares(int me, int members, std::size_t bytes, Fetch fetch, int first = 1) {
  return to_the_right(me, members, first, [&](int member) { return fetch(member, share_of(member, members, bytes)); });
}

/// Bytes combined at a time: they stay in the cache closest to the processor.
constexpr std::size_t kCombined = std::size_t{8} << 10;

/// Combines a share of what members 0 to `members` - 1 give, in this order: calls write(at, sums, part) for each part,
/// from byte `at` of the data on. piece(member, at, part) is that part of what a member gives; nullptr ends the work.
/// Without members the sums are zeros. In place too, if no other member reads this share of what this one gives.
template <typename Piece, typename Write>
void combine_parts(const Reduction& reduction, const Share& share, int members, Piece piece, Write write) {
  alignas(64) std::array<std::byte, kCombined> sums;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  for (std::size_t at = share.begin; at < share.begin + share.size; at += kCombined) {
    const std::size_t part = std::min(kCombined, share.begin + share.size - at);
    if (members == 0) {
      sums.fill(std::byte{});
    }
    for (int member = 0; member < members; ++member) {
      const std::byte* const given = piece(member, at, part);
      if (given == nullptr) {
        return;
      }
      if (member == 0) {
        copy_cached(sums.data(), given, part);
      } else {
        reduction.combine(sums.data(), given, part / reduction.element);
      }
    }
    write(at, sums.data(), part);
  }
}

}  // namespace shmem
