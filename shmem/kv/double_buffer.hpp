// SPDX-License-Identifier: Apache-2.0
// Copies by way of a core's scratch memory, as processors need them that reach other memory only from there: while one
// buffer is filled, the other one is emptied.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <span>

namespace shmem::kv {

/// Moves bytes between memory and two buffers. read() and write() return at once; reads are carried out one after the
/// other, and so are writes, but reads and writes beside each other. A buffer has one of either under way at most.
template <typename E>
concept CopyEngine = requires(E& engine, std::byte* to, const std::byte* from, std::size_t size, int buffer) {
  engine.read(to, from, size, buffer);
  engine.write(to, from, size, buffer);
  /// Return when the last read, or write, of that buffer has ended; at once if there was none.
  engine.wait_read(buffer);
  engine.wait_write(buffer);
};

/// Pieces of any size in a row; one larger than a buffer goes in several parts. Used by one thread.
template <CopyEngine Engine>
class DoubleBuffer {
 public:
  /// Half of `scratch` for each buffer. REQUIRES: scratch has two bytes or more, and is nobody else's until finish()
  /// has returned.
  DoubleBuffer(Engine& engine, std::span<std::byte> scratch)
      : engine_(engine), half_(scratch.size() / 2), buffers_{scratch.data(), scratch.data() + half_} {}

  void add(std::byte* to, const std::byte* from, std::size_t size) {
    for (std::size_t done = 0; done < size;) {
      const std::size_t part = std::min(size - done, half_);
      fill(to + done, from + done, part);
      done += part;
    }
  }

  /// Returns when all that was added is where it belongs.
  void finish() {
    empty();
    engine_.wait_write(0);
    engine_.wait_write(1);
  }

 private:
  /// What is on its way into a buffer and has not been sent on.
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

}  // namespace shmem::kv
