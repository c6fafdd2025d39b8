// SPDX-License-Identifier: Apache-2.0
// A value in shared memory that one thread writes occasionally and others read at any time, never half-written.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace shmem {

/// All zero is valid: a zero T that was never written. One writer at a time; any number of readers in any process.
/// Readers retry while a write is under way, which is short.
template <typename T>
requires std::is_trivially_copyable_v<T>
class Versioned {
 public:
  void write(const T& value) {
    Words words{};
    std::memcpy(words.data(), &value, sizeof value);
    const std::uint64_t version = version_.load(std::memory_order_relaxed);  // only this thread writes it
    version_.store(version + 1, std::memory_order_relaxed);
    // Each word is stored with release, so that a reader of a new word finds the odd version in its second check.
    for (std::size_t i = 0; i < kWords; ++i) {
      words_[i].store(words[i], std::memory_order_release);
    }
    version_.store(version + 2, std::memory_order_release);  // pairs with the first check of read()
  }

  [[nodiscard]] T read() const {
    for (;;) {
      const std::uint64_t before = version_.load(std::memory_order_acquire);
      Words words{};
      // Acquire: the second check must not come before these, and they pair with write().
      for (std::size_t i = 0; i < kWords; ++i) {
        words[i] = words_[i].load(std::memory_order_acquire);
      }
      if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before) {
        T value{};
        std::memcpy(&value, words.data(), sizeof value);
        return value;
      }
    }
  }

  /// Grows with each write; odd during one; 0 before the first.
  [[nodiscard]] std::uint64_t version() const { return version_.load(std::memory_order_acquire); }

 private:
  static constexpr std::size_t kWords = (sizeof(T) + 7) / 8;
  using Words = std::array<std::uint64_t, kWords>;

  std::atomic<std::uint64_t> version_;
  std::array<std::atomic<std::uint64_t>, kWords> words_;
};

}  // namespace shmem
