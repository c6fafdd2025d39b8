// SPDX-License-Identifier: Apache-2.0
// What the program asks of the PEs together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "shmem.h"

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

/// Prints on PE 0.
void say(const std::string& line);
/// Prints an error on standard error, on any PE.
void complain(const std::string& line);

}  // namespace kv_program
