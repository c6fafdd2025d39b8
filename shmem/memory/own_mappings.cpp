// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/own_mappings.hpp"

#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <optional>

namespace shmem {
namespace {

/// Nothing: the line has another form.
std::optional<OwnMapping> mapping_of(const std::string& line) {
  OwnMapping mapping;
  std::array<char, 5> access{};
  unsigned major = 0;
  unsigned minor = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t inode = 0;
  int path = 0;
  if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &begin, &end,
                  access.data(), &mapping.offset, &major, &minor, &inode, &path) != 7) {
    return std::nullopt;
  }
  mapping.begin = begin;
  mapping.end = end;
  mapping.readable = access[0] == 'r';
  mapping.writable = access[1] == 'w';
  mapping.shared = access[3] == 's';
  mapping.device = makedev(major, minor);
  mapping.inode = inode;
  mapping.path = path > 0 ? line.substr(static_cast<std::size_t>(path)) : "";
  return mapping;
}

}  // namespace

Result<std::vector<OwnMapping>> mappings_in(std::istream& maps, std::uintptr_t begin, std::size_t bytes) {
  std::vector<OwnMapping> found;
  std::uintptr_t covered = begin;
  const std::uintptr_t end = begin + bytes;
  for (std::string line; covered < end && std::getline(maps, line);) {
    auto mapping = mapping_of(line);
    if (!mapping || mapping->end <= covered) {
      continue;
    }
    if (mapping->begin > covered) {
      break;
    }
    covered = mapping->end;
    found.push_back(*std::move(mapping));
  }
  if (covered < end) {
    return fail(std::errc::bad_address,
                fmt::format("there is no memory at {:#x}; give memory that is mapped for as long as it is registered",
                            covered));
  }
  return found;
}

Result<std::vector<OwnMapping>> mappings_of(std::span<const std::byte> memory) {
  std::ifstream maps("/proc/self/maps");
  if (!maps) {
    return fail(std::errc::no_such_file_or_directory,
                "cannot read /proc/self/maps, which tells how memory is mapped; mount /proc");
  }
  return mappings_in(maps, reinterpret_cast<std::uintptr_t>(memory.data()), memory.size());
}

bool are_one_file(const std::vector<OwnMapping>& mappings) {
  for (std::size_t i = 0; i < mappings.size(); ++i) {
    const OwnMapping& first = mappings.front();
    const OwnMapping& mapping = mappings[i];
    if (!mapping.shared || mapping.inode == 0 || mapping.inode != first.inode || mapping.device != first.device ||
        mapping.offset - first.offset != mapping.begin - first.begin) {
      return false;
    }
  }
  return !mappings.empty();
}

}  // namespace shmem
