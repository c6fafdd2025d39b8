// SPDX-License-Identifier: Apache-2.0
// Keys of blocks, in the form that directories hold them in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace shmem::exchange {

constexpr std::size_t kMostKeyBytes = 128;
constexpr std::size_t kKeyWords = kMostKeyBytes / 8;

/// The bytes of a key in words, the last one filled up with zeros.
class Key {
 public:
  Key() = default;
  /// Nothing unless there are 1 to kMostKeyBytes bytes.
  static std::optional<Key> make(const void* data, std::size_t bytes) {
    if (data == nullptr || bytes == 0 || bytes > kMostKeyBytes) {
      return std::nullopt;
    }
    Key key;
    key.bytes_ = static_cast<std::uint32_t>(bytes);
    std::memcpy(key.words_.data(), data, bytes);
    key.hash_ = key.bytes_;
    for (std::size_t i = 0; i < key.used_words(); ++i) {
      key.hash_ = mix(key.hash_ ^ key.words_[i]);
    }
    return key;
  }

  [[nodiscard]] std::uint32_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t used_words() const { return (bytes_ + 7) / 8; }
  [[nodiscard]] std::uint64_t word(std::size_t i) const { return words_[i]; }
  [[nodiscard]] const void* data() const { return words_.data(); }
  [[nodiscard]] std::uint64_t hash() const { return hash_; }
  [[nodiscard]] bool is(const Key& other) const { return bytes_ == other.bytes_ && words_ == other.words_; }

 private:
  /// Each bit of the result depends on all bits of `value`.
  static std::uint64_t mix(std::uint64_t value) {
    value = (value ^ (value >> 32)) * 0x9e37'79b9'7f4a'7c15U;
    value = (value ^ (value >> 29)) * 0xbf58'476d'1ce4'e5b9U;
    return value ^ (value >> 32);
  }

  std::array<std::uint64_t, kKeyWords> words_{};
  std::uint64_t hash_ = 0;
  std::uint32_t bytes_ = 0;
};

}  // namespace shmem::exchange
