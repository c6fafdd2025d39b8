// SPDX-License-Identifier: Apache-2.0
// Memory without a name in any file system.
#pragma once

#include <cstddef>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace base {

constexpr std::size_t kHugePageSize = std::size_t{2} << 20;

/// kHuge: of the kernel's pool of pages of kHugePageSize (hugetlb).
enum class MemfdPages { kUsual, kHuge };

/// kOpen: keep_pages() is to follow.
enum class MemfdSeals { kFinal, kOpen };

/// A sparse memfd of `size` zero bytes, closed on exec, whose size no process can change any more. `name` is what
/// /proc/PID/maps shows. With kHuge the size is a multiple of kHugePageSize.
Result<UniqueFd> create_memfd(const char* name, std::size_t size, MemfdPages pages = MemfdPages::kUsual,
                              MemfdSeals seals = MemfdSeals::kFinal);

/// Seals the memfd, which was made with kOpen, against punched holes. Map it first: a sealed one cannot be mapped for
/// writing. Fails on Linux before 5.1.
Result<void> keep_pages(int fd);

/// True if pages of the memfd cannot be removed, so that an access to it never waits for a removal or raises SIGBUS.
bool keeps_pages(int fd);

/// An Error unless `fd` is a memfd of at least `size` bytes that no process can shrink: mapped, it cannot raise SIGBUS.
Result<void> check_memfd(int fd, std::size_t size);

}  // namespace base
