// SPDX-License-Identifier: Apache-2.0
// What is mapped at addresses of this process.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <istream>
#include <span>
#include <string>
#include <vector>

#include "shmem/result.hpp"

namespace shmem {

/// A line of /proc/self/maps.
struct OwnMapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool readable = false;
  bool writable = false;
  bool shared = false;
  std::uint64_t offset = 0;  // in the file, of the byte at `begin`
  dev_t device = 0;
  ino_t inode = 0;  // 0: no file
  std::string path;
};

/// The mappings that contain these bytes, in order. An Error (bad_address) if a byte is not mapped.
Result<std::vector<OwnMapping>> mappings_of(std::span<const std::byte> memory);
/// The same in a file of this form, for tests.
Result<std::vector<OwnMapping>> mappings_in(std::istream& maps, std::uintptr_t begin, std::size_t bytes);

/// All bytes from the first mapping to the last one are one part of one file.
bool are_one_file(const std::vector<OwnMapping>& mappings);

}  // namespace shmem
