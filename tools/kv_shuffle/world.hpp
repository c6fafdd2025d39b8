// SPDX-License-Identifier: Apache-2.0
// Shared by all PEs of the program: memory, agreement, output.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/hash.hpp"
#include "base/result.hpp"
#include "shmem.h"

namespace kv_program {

using base::Error;
using base::fail;
using base::fail_errno;
using base::Result;

/// Memory of this size on every PE. Construction and destruction are collective, in the same order on all PEs. If there
/// is not enough memory, the library prints a message and get() is nullptr on all PEs.
class SymmetricMemory {
 public:
  explicit SymmetricMemory(std::size_t bytes) : data_(static_cast<std::byte*>(shmem_malloc(bytes))) {}
  SymmetricMemory(const SymmetricMemory&) = delete;
  SymmetricMemory& operator=(const SymmetricMemory&) = delete;
  ~SymmetricMemory() { shmem_free(data_); }

  [[nodiscard]] std::byte* get() const { return data_; }

 private:
  std::byte* data_;
};

/// Lets all PEs take the same decision.
class Agreement {
 public:
  Agreement();
  [[nodiscard]] bool ok() const { return word_.get() != nullptr; }

  /// Collective: true if `mine` is true on all PEs.
  bool all(bool mine);

 private:
  SymmetricMemory word_;
};

/// Nothing after success, otherwise what failed; "" if another PE reports it.
using Outcome = std::optional<std::string>;

/// Collective: success if it is success on all PEs.
Outcome agree(Agreement& agreement, const Result<void>& mine);
/// Whether there is a value, for agree().
template <typename Value>
Result<void> without_value(const Result<Value>& result) {
  return result ? Result<void>{} : result.error();
}
/// The outcome of a failure that all PEs have seen, which PE 0 reports.
Outcome failure_of_all(const std::string& text);

/// Prints a line on PE 0.
void say(const std::string& line);
/// Prints a line on standard error, on any PE.
void complain(const std::string& line);

/// A progress line on standard error, which is overwritten and removed at the end. Shown by PE 0 if standard error is a
/// terminal, also through oshrun; otherwise nothing is printed.
class Progress {
 public:
  Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// `share` of the work is done: 0 to 1.
  void show(double share, const std::string& text);

 private:
  bool is_shown_;
  bool has_line_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace kv_program
