// SPDX-License-Identifier: Apache-2.0
// What a core copies in one shuffle: directly, or through scratch memory.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>

#include "shmem/memory/cached_copy.hpp"
#include "shmem/memory/copy.hpp"

namespace shmem::kv {

/// SHMEMX_KV_PATH_AUTO, ...
enum class Path { kAuto, kDirect, kScratch };

/// Moves bytes between memory and two buffers. read() and write() return at once. Reads are executed one after the
/// other, and so are writes, but a read and a write may overlap. A buffer has at most one of either under way.
template <typename E>
concept CopyEngine = requires(E& engine, std::byte* to, const std::byte* from, std::size_t size, int buffer) {
  engine.read(to, from, size, buffer);
  engine.write(to, from, size, buffer);
  /// Return when the last read, or write, of that buffer has ended.
  engine.wait_read(buffer);
  engine.wait_write(buffer);
};

/// Copies pieces of any size through a core's scratch memory, for processors whose cores reach other memory only from
/// there: while one buffer is filled, the other one is emptied. Used by one thread.
template <CopyEngine Engine>
class DoubleBuffer {
 public:
  /// Half of `scratch` for each buffer. REQUIRES: scratch has two bytes or more, and is not used otherwise until
  /// finish() has returned.
  DoubleBuffer(Engine& engine, std::span<std::byte> scratch)
      : engine_(engine), half_(scratch.size() / 2), buffers_{scratch.data(), scratch.data() + half_} {}

  void add(std::byte* to, const std::byte* from, std::size_t size) {
    for (std::size_t done = 0; done < size;) {
      const std::size_t part = std::min(size - done, half_);
      fill(to + done, from + done, part);
      done += part;
    }
  }

  /// Returns when all pieces have arrived.
  void finish() {
    empty();
    engine_.wait_write(0);
    engine_.wait_write(1);
  }

 private:
  /// What is on its way into a buffer, and must then be written.
  struct Part {
    std::byte* to;
    std::size_t size;  // 0: nothing
    int buffer;
  };

  void fill(std::byte* to, const std::byte* from, std::size_t size) {
    const int buffer = 1 - filled_.buffer;
    engine_.wait_write(buffer);
    engine_.read(buffers_[static_cast<std::size_t>(buffer)], from, size, buffer);
    empty();
    filled_ = {to, size, buffer};
  }

  void empty() {
    if (filled_.size != 0) {
      engine_.wait_read(filled_.buffer);
      engine_.write(filled_.to, buffers_[static_cast<std::size_t>(filled_.buffer)], filled_.size, filled_.buffer);
      filled_.size = 0;
    }
  }

  Engine& engine_;
  std::size_t half_;
  std::array<std::byte*, 2> buffers_;
  Part filled_{nullptr, 0, 1};
};

/// For processors without copy engines: calls return when the copy is done.
struct LocalEngine {
  static void read(std::byte* to, const std::byte* from, std::size_t size, int /*buffer*/) {
    copy_cached(to, from, size);
  }
  static void write(std::byte* to, const std::byte* from, std::size_t size, int /*buffer*/) {
    copy_cached(to, from, size);
  }
  static void wait_read(int /*buffer*/) {}
  static void wait_write(int /*buffer*/) {}
};

/// Copies pieces of any size and alignment. No piece's source is any piece's destination. Used by one thread.
class PieceCopy {
 public:
  /// The meaning of kAuto: if loads and stores reach all memory, a buffer only costs a second copy.
  static constexpr Path kFastest = Path::kDirect;

  /// `scratch` is this core's own, two bytes or more, and used only with kScratch.
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

  /// Then all pieces are visible to a thread that sees a later release store of the caller.
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
