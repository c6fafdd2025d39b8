// SPDX-License-Identifier: Apache-2.0
// Memory whose blocks are published: registered here, or of another member.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>

#include "base/fd.hpp"
#include "base/mapping.hpp"
#include "shmem/result.hpp"

namespace shmem::exchange {

/// The largest memory that can be registered. No block can be larger.
constexpr std::uint64_t kMostMemoryBytes = std::uint64_t{1} << 62;

/// A part of a file.
struct FileRange {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// How a process that did not make a file may read it.
enum class Access {
  kMapped,  // it cannot shrink, and its pages are always to be had
  kRead     // by pread: a mapping could raise SIGBUS
};

/// An Error unless `fd` is a file in memory that has this range: any other might make a reader wait for a file system.
Result<Access> check_memory(int fd, const FileRange& range);

/// An Error unless `fd` is a memfd of at least `size` bytes that cannot shrink, in pages that are always to be had:
/// what another process has made can be mapped then, and raises no SIGBUS.
Result<void> check_shared(int fd, std::size_t size);

/// How much of the memory of one other member may still be mapped: a file can cost its owner nothing, and takes
/// addresses of each reader. Thread-safe.
class MappingRoom : public std::enable_shared_from_this<MappingRoom> {
 public:
  explicit MappingRoom(std::uint64_t bytes) : left_(bytes) {}
  /// Twice the memory of this machine, and not more than leaves room for all members that there can be.
  static std::uint64_t most();

  /// The bytes are taken until what this returns is destroyed. Null: there are not as many.
  std::shared_ptr<void> take(std::uint64_t bytes);

 private:
  std::atomic<std::uint64_t> left_;
};

/// Memory of another member, which can change its bytes at any time. Thread-safe.
class PeerMemory {
 public:
  /// Takes `file` if it reads by it; else, also after an error, the caller closes it. Memory for which there is no room
  /// is read like memory that can shrink. `room` may be null: there is enough.
  static Result<PeerMemory> open(base::UniqueFd&& file, const FileRange& range, MappingRoom* room);

  [[nodiscard]] bool has(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= range_.bytes && bytes <= range_.bytes - offset;
  }
  /// Null unless it is mapped. REQUIRES: has() this offset.
  [[nodiscard]] const std::byte* at(std::uint64_t offset) const {
    return mapping_ ? mapping_.data() + offset : nullptr;
  }
  /// Error: EIO. REQUIRES: has(offset, bytes), not mapped.
  std::errc read(std::uint64_t offset, std::byte* to, std::uint64_t bytes) const;

 private:
  base::UniqueFd file_;         // or
  std::shared_ptr<void> room_;  // before the next: it is given back after the end of the mapping
  base::Mapping mapping_;       // of the range
  FileRange range_;
};

}  // namespace shmem::exchange
