// SPDX-License-Identifier: Apache-2.0
// The operators new and delete of a test program whose allocations can fail. For one file of the program, which defines
// test_support::must_fail().
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace test_support {

/// Whether this allocation fails.
bool must_fail();

}  // namespace test_support

// NOLINTBEGIN(cppcoreguidelines-owning-memory): these are what owners use
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* const memory = test_support::must_fail() ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}
// GoogleTest calls it, and a sanitizer's own would hand out memory that the delete below must not free.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
// NOLINTEND(cppcoreguidelines-owning-memory)
