// SPDX-License-Identifier: Apache-2.0
// A stream of frames over TCP, each a header and a payload, little-endian. Once both sides have proved themselves, a
// Seal follows each frame. No I/O.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "wire/proof.hpp"

namespace wire {

/// Each protocol has numbers of its own, so that none takes another one's frames: a job's server 1 to 21
/// (shmem/bootstrap/uid_protocol.hpp), exchanges from 64 (kv/exchange/link_frames.hpp).
enum class FrameType : std::uint16_t {};

constexpr std::uint32_t kFrameMagic = 0x31554853;  // "SHU1"
constexpr std::uint16_t kFrameVersion = 3;

struct FrameHeader {
  std::uint32_t magic;
  std::uint16_t version;
  FrameType type;
  std::uint32_t length;  // bytes of payload
  std::uint32_t step;    // of a job's collectives, from 1; 0: not in a collective
};
static_assert(sizeof(FrameHeader) == 16);

struct Frame {
  FrameType type;
  std::uint32_t step;
  std::vector<std::byte> payload;

  /// The payload after `from` bytes.
  [[nodiscard]] std::string text(std::size_t from) const {
    from = std::min(from, payload.size());
    return {reinterpret_cast<const char*>(payload.data()) + from, payload.size() - from};
  }
  /// The payload's first bytes as a T, or nothing if the payload is shorter.
  template <typename T>
  requires std::is_trivially_copyable_v<T>
  [[nodiscard]] std::optional<T> head() const {
    if (payload.size() < sizeof(T)) {
      return std::nullopt;
    }
    T value{};
    std::memcpy(&value, payload.data(), sizeof(T));
    return value;
  }
};

/// Bytes to be sent, shared by their receivers.
using FrameBytes = std::shared_ptr<const std::vector<std::byte>>;

/// A frame with the payload `head` and then `body`.
FrameBytes encode(FrameType type, std::uint32_t step, std::span<const std::byte> head,
                  std::span<const std::byte> body = {});
template <typename T>
requires std::is_trivially_copyable_v<T> FrameBytes encode(FrameType type, const T& head, std::string_view text) {
  return encode(type, 0, std::as_bytes(std::span(&head, 1)), std::as_bytes(std::span(text)));
}

/// The seal of a frame, to be sent after it.
FrameBytes encode(const Seal& seal);

/// Assembles frames from bytes that come in pieces of any size.
class FrameReader {
 public:
  /// A frame with more payload than `most` is an Error.
  explicit FrameReader(std::size_t most) : most_(most) {}
  void allow(std::size_t most) { most_ = most; }
  /// From now on each frame has a seal; a wrong one is an Error: permission_denied.
  void require(Seals seals) { seals_ = seals; }

  void push(std::span<const std::byte> bytes);
  /// The next frame, or nothing if it is incomplete. After an Error (not a frame) the reader is unusable.
  Result<std::optional<Frame>> next();

 private:
  [[nodiscard]] Result<void> check_seal(std::span<const std::byte> frame, std::span<const std::byte> seal);

  std::size_t most_;
  std::optional<Seals> seals_;
  std::vector<std::byte> bytes_;
  std::size_t begin_ = 0;
};

}  // namespace wire
