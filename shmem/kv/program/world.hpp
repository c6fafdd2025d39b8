// SPDX-License-Identifier: Apache-2.0
// What the program asks of the PEs together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "shmem.h"
#include "shmem/result.hpp"

namespace kv_program {

/// Memory of this size on every PE. Making one is collective, as is its end: all PEs have the same ones and end them in
/// the same order. Memory that cannot be had is nullptr, on all PEs, with a message.
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

/// Lets all PEs go the same way.
class Agreement {
 public:
  Agreement();
  [[nodiscard]] bool there() const { return word_.get() != nullptr; }

  /// Collective: true if it is true on all PEs.
  bool all(bool mine);

 private:
  SymmetricMemory word_;
};

/// Nothing if all went well, else what did not; "" where another PE says it.
using Outcome = std::optional<std::string>;

/// Collective: well if it is on all PEs.
Outcome agree(Agreement& agreement, const shmem::Result<void>& mine);
/// Whether there is a value, for agree().
template <typename Value>
shmem::Result<void> without_value(const shmem::Result<Value>& result) {
  return result ? shmem::Result<void>{} : tl::make_unexpected(result.error());
}
/// Of what all PEs have seen alike: PE 0 says it.
Outcome failure_of_all(const std::string& text);

/// Prints on PE 0.
void say(const std::string& line);
/// Prints an error on standard error, on any PE.
void complain(const std::string& line);

}  // namespace kv_program
