// SPDX-License-Identifier: Apache-2.0
// What a process needs to take the place of a PE that has died: the results of the collective steps by which the PEs
// started, and the memory that they share. Every PE keeps it in a memfd; the new process, on the same node and of the
// same user, opens that through /proc.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/fd.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// The memory of the node, as NodeMemory has it.
struct NodeFds {
  base::UniqueFd heaps;
  base::UniqueFd areas;
};

/// Used by one thread.
class StartRecord {
 public:
  void add(std::span<const std::byte> all);
  /// A memfd with the steps and the numbers of the files, which stay open in this process.
  [[nodiscard]] Result<base::UniqueFd> write(int heaps, int areas) const;

  /// That of process `owner`, which has published its descriptor.
  static Result<StartRecord> read(pid_t owner, int fd);
  [[nodiscard]] NodeFds take_files() { return std::move(files_); }
  /// What the next step gave, of `bytes` bytes; an Error if that is not the step that the PEs made.
  Result<std::vector<std::byte>> next(std::size_t bytes);

 private:
  std::vector<std::vector<std::byte>> steps_;
  std::size_t next_ = 0;
  NodeFds files_;
};

}  // namespace shmem
