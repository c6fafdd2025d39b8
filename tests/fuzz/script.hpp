// SPDX-License-Identifier: Apache-2.0
// The format of an input of the session target: steps that clients of the device take, one after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace fuzz {

/// A step is one byte, taken modulo kSteps, then its arguments, little-endian. Arguments past the end of the input are
/// 0. Numbers never change: the corpus depends on them.
enum class Step : std::uint8_t {
  kCommand,      // u8 command, u8 flags, u16 length, payload: a complete message, sent after the queued bytes
  kQueue,        // the same, but only queued
  kRaw,          // u16 length, bytes: sent unchanged
  kDescriptors,  // u8 count, that many u8 kinds (Descriptor): are passed with the next byte that is sent
  kCut,       // u16 length, u8: the device handles the first bytes of the next send before the rest (1: drops the rest)
  kRead,      // u16 length: reads up to that many bytes from the server
  kAnswer,    // u8 flags, u16 length: answers the oldest DMA_WRITE that was read
  kStore,     // u8 descriptor, u16 offset, u64 value: an 8-byte store to pages that the server passed
  kMisuse,    // u8 descriptor, u8 Misuse: misuse of a descriptor that the server passed
  kResize,    // u8 file, u8 pages: resizes one of the client's memory files
  kClient,    // u8: selects the client that takes the next steps; it connects if it is not connected
  kVanish,    // the client closes its socket
  kShutDown,  // u8: the client closes one direction of its socket
  kTick,      // u8: 2^n nanoseconds pass
  kJoin,      // u8 client, u8 member: JOIN to the last group that this client has allocated
  kSleep,     // the device goes to sleep and is woken
  kBarrier,   // the well-behaved members do a barrier
};
inline constexpr unsigned kSteps = 17;

/// The kinds of descriptors that are passed with a message.
enum class Descriptor : std::uint8_t {
  kMemory,          // 16 pages; the client's first file
  kOtherMemory,     // the client's second file
  kReadOnlyMemory,  // the client's first file, opened for reading
  kSealedMemory,    // sealed against writing
  kEventfd,
  kFullEventfd,  // blocking, with the highest count
  kPipeReader,
  kPipeWriter,
  kSocket,
  kFolder,
  kNull,      // /dev/null
  kPath,      // opened with O_PATH
  kReceived,  // the last descriptor from the server
};
inline constexpr unsigned kDescriptors = 13;

enum class Misuse : std::uint8_t { kShrink, kGrow, kWrite, kFill, kMakeBlocking, kDrain };
inline constexpr unsigned kMisuses = 6;

/// Reads an input. Never fails: bytes past the end are 0.
class Input {
 public:
  explicit Input(std::span<const std::byte> bytes) : rest_(bytes) {}

  [[nodiscard]] bool empty() const { return rest_.empty(); }
  template <typename T>
  T take() {
    T value{};
    const auto bytes = take_bytes(sizeof value);
    if (!bytes.empty()) {  // the address may be nullptr
      std::memcpy(&value, bytes.data(), bytes.size());
    }
    return value;
  }
  /// Up to `count` bytes.
  std::span<const std::byte> take_bytes(std::size_t count) {
    const auto bytes = rest_.first(std::min(count, rest_.size()));
    rest_ = rest_.subspan(bytes.size());
    return bytes;
  }
  /// One of the first `count` values of an enumeration.
  template <typename E>
  E choose(unsigned count) {
    return static_cast<E>(take<std::uint8_t>() % count);
  }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace fuzz
