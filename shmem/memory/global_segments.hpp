// SPDX-License-Identifier: Apache-2.0
// Where the global and static variables of the program are, and how to tell whether another PE has the same ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "shmem/result.hpp"

namespace shmem {

/// Whole pages of writable data of one object. The first `initialized` bytes come from its file, the rest is zero until
/// it is written.
struct GlobalRange {
  std::byte* begin;
  std::size_t size;
  std::size_t initialized;
};

/// The data of the executable and of the shared libraries that are the program's own.
struct GlobalImage {
  std::vector<GlobalRange> ranges;
  /// Equal for two processes whose globals stand at the same offsets in the same ranges, whatever the base addresses
  /// are: a hash of the build ids (or the code, where there are none) and of the ranges.
  std::uint64_t identity = 0;

  /// Of all ranges together.
  [[nodiscard]] std::size_t size() const;
};

/// The program's own are the executable and whatever stands behind DT_NEEDED of it, or of another library of its own,
/// but is_runtime(): what was preloaded or is loaded later is not. Data that the loader makes read-only after
/// relocation (RELRO) is left out. Thread-safe.
GlobalImage find_globals();

/// An Error unless all pages are as the loader has left them: memory of this process that can be read and written. What
/// the program has protected, or mapped there itself, would not be so any more after an exchange.
Result<void> check_untouched(const std::vector<GlobalRange>& ranges);

/// True for libraries that come with the system (in /lib, /usr/lib and the like) and for the known runtimes of
/// languages, sanitizers and message passing, ours included, wherever they are. `name` is the soname.
bool is_runtime(const std::string& path, const std::string& name);

/// What is left of [begin, begin + size) without [hole, hole_end), in order; empty pieces are left out.
std::vector<GlobalRange> without(const GlobalRange& range, const std::byte* hole, const std::byte* hole_end);

}  // namespace shmem
