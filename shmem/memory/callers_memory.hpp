// SPDX-License-Identifier: Apache-2.0
// Memory that the program has: the file that it is a mapping of, and mappings of that file in other processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/fd.hpp"
#include "base/mapping.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// A part of a file in memory.
struct FilePart {
  base::UniqueFd file{};  // none: the memory is private to its process, or its file cannot be handed over
  std::uint64_t offset = 0;
};

/// An Error unless other processes could use the memory: it is mapped, can be read and written, and is not a device's.
/// With a `fd` of 0 or more also unless the memory is a shared mapping of that file from `offset` on, and other
/// processes can map that. With -1 the file is searched for, among the open files and the paths of this process;
/// without a file, the memory is private.
Result<FilePart> file_of(std::span<std::byte> memory, int fd, std::uint64_t offset);

/// A mapping of a part of a file of another process.
struct Window {
  base::Mapping mapping;  // of whole pages of the file
  std::byte* data = nullptr;
};
/// An Error unless `file` is a file in memory that has these bytes. Nothing in the file is trusted: it can still shrink
/// later if it has no seal against that (SIGBUS).
Result<Window> map_window(int file, std::uint64_t offset, std::size_t bytes);

}  // namespace shmem
