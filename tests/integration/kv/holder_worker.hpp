// SPDX-License-Identifier: Apache-2.0
// An engine that puts blocks into a holder while a test kills it: what both share, in a file that they map.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "base/fd.hpp"
#include "base/mapping.hpp"

namespace holder_worker {

constexpr std::uint64_t kLayout = 47;
constexpr std::size_t kWorkers = 8;

/// Of one engine. It outlives the process.
struct Work {
  std::atomic<std::uint64_t> begun{0};       // the number of the block that it puts, or has put last
  std::atomic<std::uint64_t> stored{0};      // the last number that the holder has confirmed
  std::atomic<std::uint64_t> failed{0};      // puts, because the holder was not there or did not answer
  std::atomic<std::int32_t> wrong{0};        // another status of a put, or of a find
  std::atomic<std::uint64_t> longest_ns{0};  // put
};
struct Board {
  std::array<Work, kWorkers> work;
};

class SharedBoard {
 public:
  /// Maps the file: zeros at first.
  explicit SharedBoard(const std::string& path) {
    const base::UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (::ftruncate(file.get(), sizeof(Board)) == 0) {
      if (auto mapped = base::Mapping::share(file.get(), sizeof(Board))) {
        memory_ = *std::move(mapped);
      }
    }
  }
  explicit operator bool() const { return static_cast<bool>(memory_); }
  Board* operator->() const { return reinterpret_cast<Board*>(memory_.data()); }

 private:
  base::Mapping memory_;
};

inline std::string key_of(std::size_t worker, std::uint64_t number) {
  return "worker " + std::to_string(worker) + " block " + std::to_string(number);
}
/// From 4 KiB to 2 MiB and more: in one message with others, in one, and in several.
inline std::size_t bytes_of(std::uint64_t number) {
  constexpr std::array<std::size_t, 5> kSizes{4096, 32'768, 300'000, 1'048'576, 2'200'000};
  return kSizes[number % kSizes.size()];
}
/// Each byte follows from the key.
inline std::string block_of(const std::string& key, std::size_t bytes) {
  std::string block(bytes, '\0');
  std::uint64_t state = 0x9e37'79b9'7f4a'7c15U;
  for (const char letter : key) {
    state = (state ^ static_cast<unsigned char>(letter)) * 0xbf58'476d'1ce4'e5b9U;
  }
  for (std::size_t i = 0; i < bytes; ++i) {
    block[i] = static_cast<char>(state >> 56);
    state = state * 6364136223846793005U + 1442695040888963407U;
  }
  return block;
}

}  // namespace holder_worker
