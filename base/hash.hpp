// SPDX-License-Identifier: Apache-2.0
// Hashes that protect against coincidence only, and are the same on all machines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace base {

/// 2^64 / golden ratio, odd: the upper bits of a product with it depend on all bits of the other factor (Fibonacci
/// hashing), and multiples of it are the states of SplitMix64.
constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15U;

/// The mixing function of SplitMix64: each bit of the result depends on all bits of `word`.
constexpr std::uint64_t mix(std::uint64_t word) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9U;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebU;
  return word ^ (word >> 31);
}

/// FNV-1a, of few bytes.
class Fnv {
 public:
  // Reads also what sanitizers put between constants.
  __attribute__((no_sanitize("address"))) void add(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < size; ++i) {
      value_ = (value_ ^ bytes[i]) * 0x100000001b3U;
    }
  }
  void add(std::span<const std::byte> bytes) { add(bytes.data(), bytes.size()); }
  void add(std::string_view text) { add(text.data(), text.size()); }
  void add(std::uint64_t number) { add(&number, sizeof number); }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325U;
};

}  // namespace base
