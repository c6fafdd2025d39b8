// SPDX-License-Identifier: Apache-2.0
// Copies between the memories of PEs, and the choice between storing through the cache and past it.
#pragma once

#include <cstddef>

namespace shmem {

/// From this size on a copy may go past the cache.
///
/// Where the lines of a destination on another PE are in that PE's cache, a store through the cache first takes each
/// line away from there (7 to 28 ns per line, measured), which costs more than the copy itself. Streaming stores do not
/// wait for that, but must all have left the processor before the copy returns, and below some 16 KiB that costs more.
constexpr std::size_t kStreamingFrom = std::size_t{16} << 10;

/// Copies `size` bytes; the areas do not overlap, any alignment. Visible to whoever sees a release store that the
/// caller makes afterwards. Thread-safe.
///
/// A large copy begins through the cache, and looks at the clock: lines that are in this processor's cache already, or
/// in nobody's, are stored there at twice the speed of streaming. It goes on past the cache when the stores take longer
/// than streaming would, and tries the cache again when it has copied twice as much.
void copy_bytes(void* destination, const void* source, std::size_t size);

/// As copy_bytes, with stores past the cache whatever the size, where the processor has them. A release store does not
/// order those: hence the fence at the end, before this returns.
void copy_streaming(void* destination, const void* source, std::size_t size);

}  // namespace shmem
