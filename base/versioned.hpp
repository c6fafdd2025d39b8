// SPDX-License-Identifier: Apache-2.0
// Words in shared memory that one thread writes occasionally and others read at any time, never half-written: a
// sequence lock, without a wait for its writer.
#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace base {

/// The version of atomic words: even, and odd while they are written. One writer at a time, which stores each word with
/// release; any number of readers in any process, which load each with acquire. So a reader of a new word finds the odd
/// version in its second look: the odd version is stored before each new word (release), and the second look is not
/// earlier than a load (acquire). All zero is valid: words that were never written.
class Version {
 public:
  /// Acquire: pairs with the end of write(), and what is read next is not older.
  [[nodiscard]] std::uint64_t get() const { return value_.load(std::memory_order_acquire); }

  /// `next`: an even number that is not the present version.
  template <std::invocable Stores>
  void write(std::uint64_t next, Stores stores) {
    value_.store(next - 1, std::memory_order_relaxed);  // each of the stores orders it
    stores();
    value_.store(next, std::memory_order_release);  // pairs with get(): all words are visible
  }
  template <std::invocable Stores>
  void write(Stores stores) {
    write(value_.load(std::memory_order_relaxed) + 2, stores);  // only this thread writes it
  }

  /// Whether `version`, an even one, is there before and after `loads()`. If not, that did not belong together.
  template <std::invocable Loads>
  [[nodiscard]] bool read(std::uint64_t version, Loads loads) const {
    return get() == version && (loads(), value_.load(std::memory_order_relaxed) == version);  // the loads order it
  }
  /// What `loads()` returns. Tries again while a write is under way, which is short.
  template <std::invocable Loads>
  [[nodiscard]] auto read(Loads loads) const {
    for (;;) {
      const std::uint64_t before = get();
      const auto value = loads();
      if (before % 2 == 0 && value_.load(std::memory_order_relaxed) == before) {  // the loads order it
        return value;
      }
    }
  }

 private:
  std::atomic<std::uint64_t> value_;
};

/// A value in such words. All zero is valid: a zero T that was never written.
template <typename T>
requires std::is_trivially_copyable_v<T>
class Versioned {
 public:
  /// By one thread at a time.
  void write(const T& value) {
    Words words{};
    std::memcpy(words.data(), &value, sizeof value);
    version_.write([&] {
      for (std::size_t i = 0; i < kWords; ++i) {
        words_[i].store(words[i], std::memory_order_release);
      }
    });
  }

  [[nodiscard]] T read() const {
    const Words words = version_.read([this] {
      Words loaded{};
      for (std::size_t i = 0; i < kWords; ++i) {
        loaded[i] = words_[i].load(std::memory_order_acquire);
      }
      return loaded;
    });
    T value{};
    std::memcpy(&value, words.data(), sizeof value);
    return value;
  }

  /// Grows with each write; odd during one; 0 before the first.
  [[nodiscard]] std::uint64_t version() const { return version_.get(); }

 private:
  static constexpr std::size_t kWords = (sizeof(T) + 7) / 8;
  using Words = std::array<std::uint64_t, kWords>;

  Version version_;
  std::array<std::atomic<std::uint64_t>, kWords> words_;
};

}  // namespace base
