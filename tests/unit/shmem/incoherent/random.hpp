// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same everywhere for the same seed (splitmix64).
#pragma once

#include <cstddef>
#include <cstdint>

namespace incoherent {

class Random {
 public:
  explicit Random(std::uint64_t seed = 0) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(next() % limit); }
  /// True with a probability of `parts` in 1024.
  bool chance(unsigned parts) { return parts != 0 && next() % 1024 < parts; }

 private:
  std::uint64_t state_;
};

}  // namespace incoherent
