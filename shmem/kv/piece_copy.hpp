// SPDX-License-Identifier: Apache-2.0
// What a core copies in one shuffle, by one of two ways.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>

#include "shmem/kv/double_buffer.hpp"
#include "shmem/memory/copy.hpp"

namespace shmem::kv {

enum class Path { kAuto, kDirect, kScratch };

/// This processor has no engine beside its cores: what is asked of this one has been done when the call returns.
struct LocalEngine {
  static void read(std::byte* to, const std::byte* from, std::size_t size, int /*buffer*/) {
    std::memcpy(to, from, size);
  }
  static void write(std::byte* to, const std::byte* from, std::size_t size, int /*buffer*/) {
    std::memcpy(to, from, size);
  }
  static void wait_read(int /*buffer*/) {}
  static void wait_write(int /*buffer*/) {}
};

/// Pieces in a row, each of any size and alignment. No piece's source is any piece's destination. Used by one thread.
class PieceCopy {
 public:
  /// What kAuto is here: where a load and a store reach all memory, a buffer is a second copy.
  static constexpr Path kFastest = Path::kDirect;

  /// `scratch` is this core's own, two bytes or more, and used with kScratch only.
  explicit PieceCopy(Path path = Path::kAuto, std::span<std::byte> scratch = {}) {
    if ((path == Path::kAuto ? kFastest : path) == Path::kScratch) {
      buffers_.emplace(engine_, scratch);
    }
  }
  PieceCopy(const PieceCopy&) = delete;
  PieceCopy& operator=(const PieceCopy&) = delete;
  ~PieceCopy() = default;

  void add(std::byte* to, const std::byte* from, std::size_t size) {
    if (buffers_) {
      buffers_->add(to, from, size);
    } else {
      direct_.add(to, from, size);
    }
  }

  /// After it all pieces are visible to whoever sees a release store that the caller makes.
  void finish() {
    if (buffers_) {
      buffers_->finish();
    } else {
      direct_.finish();
    }
  }

 private:
  BatchCopy direct_;
  LocalEngine engine_;
  std::optional<DoubleBuffer<LocalEngine>> buffers_;
};

}  // namespace shmem::kv
