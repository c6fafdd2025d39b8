// SPDX-License-Identifier: Apache-2.0
// Reductions and scans (OpenSHMEM 1.6, section 9.10).
#pragma once

#include <algorithm>
#include <array>

#include "shmem/collective/members.hpp"

namespace shmem {

/// Combines two elements: first[i] = first[i] OP second[i]. The two do not overlap.
struct Reduction {
  std::size_t element;  // bytes
  void (*combine)(void* first, const void* second, std::size_t count);
};

/// Bytes combined at a time: they stay in the cache closest to the processor.
constexpr std::size_t kCombined = std::size_t{8} << 10;

/// Combines `size` bytes of members 0 to `members` - 1, in this order: calls write(at, sums, part) for each part, from
/// byte `at` on. piece(member, at, part) is that part of what a member gives; nullptr ends the work.
template <typename Piece, typename Write>
void combine_parts(const Reduction& reduction, std::size_t size, int members, Piece piece, Write write) {
  alignas(64) std::array<std::byte, kCombined> sums;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  for (std::size_t at = 0; at < size; at += kCombined) {
    const std::size_t part = std::min(kCombined, size - at);
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

/// Element i of every `dest` becomes the combination of all members' elements i, in the order of their numbers, or node
/// by node: the same bits on all members. `dest` is `source`, or they do not overlap.
Result<void> reduce(const Members& members, const Reduction& reduction, void* dest, const void* source,
                    std::size_t count);

/// The same for members 0 to this one (`inclusive`), or to the one before it; zeros if there are none.
Result<void> scan(const Members& members, const Reduction& reduction, void* dest, const void* source, std::size_t count,
                  bool inclusive);

}  // namespace shmem
