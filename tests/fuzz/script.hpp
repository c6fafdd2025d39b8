// SPDX-License-Identifier: Apache-2.0
// What an input of the session target means: steps that clients of the device take, one after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace fuzz {

/// A step is its byte, then its arguments, little-endian; a byte that is none is taken modulo kSteps. Arguments past
/// the end of the input are 0. Numbers never change: the corpus depends on them.
enum class Step : std::uint8_t {
  kCommand,      // u8 command, u8 flags, u16 length, payload: a whole message, sent with what was queued before
  kQueue,        // the same, not sent yet
  kRaw,          // u16 length, bytes: sent as they are
  kDescriptors,  // u8 count, that many u8 kinds (Descriptor): go with the first byte that is sent next
  kCut,       // u16 length, u8: the next sending stops after so many bytes, is looked at, and then (1: never) goes on
  kRead,      // u16 length: reads what the server has sent, up to so many bytes
  kAnswer,    // u8 flags, u16 length: answers the oldest DMA_WRITE that was read
  kStore,     // u8 descriptor, u16 offset, u64 value: an 8-byte store to pages that came from the server
  kMisuse,    // u8 descriptor, u8 Misuse: of a descriptor that came from the server
  kResize,    // u8 file, u8 pages: one of the client's memory files
  kClient,    // u8: from here on another client acts; it connects if it has not
  kVanish,    // the client closes its socket
  kShutDown,  // u8: it closes one direction only
  kTick,      // u8: 2^n nanoseconds pass
  kJoin,      // u8 client, u8 member: JOIN to the group that this client has allocated last
  kSleep,     // the device goes to sleep and is woken
  kBarrier,   // the well-behaved members do a barrier
};
inline constexpr unsigned kSteps = 17;

/// What may go along with a message.
enum class Descriptor : std::uint8_t {
  kMemory,          // 16 pages; the client's first file
  kOtherMemory,     // its second one
  kReadOnlyMemory,  // its first file, opened for reading
  kSealedMemory,    // may not be written
  kEventfd,
  kFullEventfd,  // blocking, and its count as high as it goes
  kPipeReader,
  kPipeWriter,
  kSocket,
  kFolder,
  kNull,      // /dev/null
  kPath,      // opened with O_PATH
  kReceived,  // what the server sent last
};
inline constexpr unsigned kDescriptors = 13;

enum class Misuse : std::uint8_t { kShrink, kGrow, kWrite, kFill, kMakeBlocking, kDrain };
inline constexpr unsigned kMisuses = 6;

/// Takes an input apart. Never fails: what is not there is 0.
class Input {
 public:
  explicit Input(std::span<const std::byte> bytes) : rest_(bytes) {}

  [[nodiscard]] bool empty() const { return rest_.empty(); }
  template <typename T>
  T take() {
    T value{};
    const auto bytes = take_bytes(sizeof value);
    if (!bytes.empty()) {  // there may be no address either
      std::memcpy(&value, bytes.data(), bytes.size());
    }
    return value;
  }
  /// At most `count` bytes.
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
