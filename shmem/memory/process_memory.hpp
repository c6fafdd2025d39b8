// SPDX-License-Identifier: Apache-2.0
// Private memory of another process, which the kernel copies.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "base/fd.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// Blocks of `block` bytes, whose beginnings are `here_step` and `there_step` bytes apart.
struct CopyBlocks {
  std::size_t here_step = 0;
  std::size_t there_step = 0;
  std::size_t block = 0;
  std::size_t count = 1;
};

/// `size` bytes, anywhere on both sides.
struct CopyPiece {
  std::uint64_t there = 0;
  const void* here = nullptr;
  std::size_t size = 0;
};

/// Thread-safe. Addresses `there` are those of the other process. Errors: owner_dead, bad_address (not mapped there),
/// permission_denied. Another process that gets the number of one that has ended is not accessed.
class ProcessMemory {
 public:
  /// `process` is visible from here.
  static Result<ProcessMemory> open(pid_t process);

  [[nodiscard]] std::errc read(void* here, std::uint64_t there, const CopyBlocks& blocks) const;
  [[nodiscard]] std::errc write(std::uint64_t there, const void* here, const CopyBlocks& blocks) const;
  /// After an error any of the pieces may have been written. REQUIRES: no piece is empty.
  [[nodiscard]] std::errc write(std::span<const CopyPiece> pieces) const;

 private:
  ProcessMemory(pid_t process, base::UniqueFd handle) : process_(process), handle_(std::move(handle)) {}
  template <typename Call, typename PieceAt>
  std::errc copy(Call call, std::size_t count, PieceAt piece_at) const;

  pid_t process_;
  base::UniqueFd handle_;
};

/// What the administrator or the program can do where such copies are refused.
std::string copy_advice();

/// While it exists, `process` and its descendants (-1: all processes of this user) may copy this process's memory, if
/// the Yama security module limits that to ancestors; otherwise it does nothing. A process has one such setting: if
/// there are several, the widest counts. Thread-safe.
class CopyPermission {
 public:
  explicit CopyPermission(pid_t process);
  CopyPermission(CopyPermission&& other) noexcept : process_(std::exchange(other.process_, 0)) {}
  CopyPermission& operator=(CopyPermission&& other) noexcept {
    std::swap(process_, other.process_);
    return *this;
  }
  ~CopyPermission();

 private:
  pid_t process_;  // 0: it does nothing
};

}  // namespace shmem
