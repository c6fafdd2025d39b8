// SPDX-License-Identifier: Apache-2.0
// FNV-1a, a hash of few bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace base {

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
