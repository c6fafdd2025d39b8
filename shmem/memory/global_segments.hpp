// SPDX-License-Identifier: Apache-2.0
// Where the program's global and static variables are, and whether another PE has the same ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "shmem/result.hpp"

namespace shmem {

/// Whole pages of writable data of one object. The first `initialized` bytes come from its file, the rest is zero at
/// first.
struct GlobalRange {
  std::byte* begin;
  std::size_t size;
  std::size_t initialized;
};

/// The data of the executable and of the program's own shared libraries.
struct GlobalImage {
  std::vector<GlobalRange> ranges;
  /// Equal for two processes whose globals are at the same offsets in the same ranges, at any base address: a hash of
  /// the build ids (or the code if there are none) and of the ranges.
  std::uint64_t identity = 0;

  /// The sum over all ranges.
  [[nodiscard]] std::size_t size() const;
};

/// The program's own objects are the executable and the DT_NEEDED libraries, direct and indirect, that are neither
/// is_runtime() nor is_listed() in `skip`: libraries preloaded or loaded later do not count. Data that the loader makes
/// read-only after relocation (RELRO) is skipped. Thread-safe.
GlobalImage find_globals(const std::string& skip = "");

/// An Error unless all pages are as the loader left them: readable, writable memory of this process. An exchange would
/// undo the program's own protections and mappings there.
Result<void> check_untouched(const std::vector<GlobalRange>& ranges);

/// True for libraries of the system (in /lib, /usr/lib and the like) and for the known runtimes of languages, threads,
/// accelerators, sanitizers and message passing, ours included, in any folder. `name` is the soname.
bool is_runtime(const std::string& path, const std::string& name);

/// Whether `name` begins with an element of `list`, which commas or colons separate.
bool is_listed(const std::string& list, const std::string& name);

/// The parts of [begin, begin + size) without [hole, hole_end), in order; empty parts are skipped.
std::vector<GlobalRange> without(const GlobalRange& range, const std::byte* hole, const std::byte* hole_end);

}  // namespace shmem
