// SPDX-License-Identifier: Apache-2.0
// What PEs of a job say to each other over TCP: a stream of frames, each a header and a payload, little-endian.
#pragma once

#include <algorithm>
#include <array>
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

#include "shmem/result.hpp"

namespace shmem {

enum class FrameType : std::uint16_t {
  // From a PE to the server.
  kHello = 1,   // Hello: the first of a connection
  kGather = 2,  // GatherHead, then the PE's bytes
  kLeave = 3,   // the connection will be closed, and that is well
  kAbort = 4,   // AbortHead, then the reason
  // From the server to a PE.
  kAccepted = 16,  // int32: the PE whose process serves; the PE is one of the job, others are still awaited
  kWelcome = 17,   // all have come
  kGathered = 18,  // everybody's bytes, in rank order
  kFailed = 19,    // FailedHead, then the text: why nothing more will be answered
  kAborted = 20,   // AbortHead, then the reason: a PE has ended the job
};

constexpr std::uint32_t kFrameMagic = 0x31554853;  // "SHU1"
constexpr std::uint16_t kFrameVersion = 1;

struct FrameHeader {
  std::uint32_t magic;
  std::uint16_t version;
  FrameType type;
  std::uint32_t length;  // bytes of payload
  std::uint32_t step;    // of the job's collectives, from 1; 0: of none
};
static_assert(sizeof(FrameHeader) == 16);

/// What the PEs of one job know and nobody else does. Never printed.
using Secret = std::array<std::uint8_t, 16>;

struct Hello {
  Secret secret;
  std::int32_t rank;
  std::int32_t size;
  std::int32_t process;
  std::uint32_t limit;  // how long this PE waits in a step, in ms
  std::array<char, 64> host;
};
static_assert(sizeof(Hello) == 96);

struct GatherHead {
  std::uint32_t limit;  // as in Hello
};

struct FailedHead {
  std::int32_t code;  // std::errc
};

struct AbortHead {
  std::int32_t pe;
  std::int32_t status;
};

struct Frame {
  FrameType type;
  std::uint32_t step;
  std::vector<std::byte> payload;

  /// What follows after `from` bytes, if there are so many.
  [[nodiscard]] std::string text(std::size_t from) const {
    from = std::min(from, payload.size());
    return {reinterpret_cast<const char*>(payload.data()) + from, payload.size() - from};
  }
  /// The payload's first bytes as a T, or nothing if there are too few.
  template <typename T>
  requires std::is_trivially_copyable_v<T>
  [[nodiscard]] std::optional<T> head() const {
    if (payload.size() < sizeof(T)) return std::nullopt;
    T value{};
    std::memcpy(&value, payload.data(), sizeof(T));
    return value;
  }
};

/// Bytes ready to be sent; to be sent to many, they are shared.
using FrameBytes = std::shared_ptr<const std::vector<std::byte>>;

/// A frame whose payload is `head` and then `body`.
FrameBytes encode(FrameType type, std::uint32_t step, std::span<const std::byte> head,
                  std::span<const std::byte> body = {});
/// kFailed.
FrameBytes encode(const Error& error);
template <typename T>
requires std::is_trivially_copyable_v<T> FrameBytes encode(FrameType type, const T& head, std::string_view text) {
  return encode(type, 0, std::as_bytes(std::span(&head, 1)), std::as_bytes(std::span(text)));
}

/// Puts frames together from bytes that come in pieces of any size. Keeps no more than it was given.
class FrameReader {
 public:
  /// A frame with more payload than `most` is an Error.
  explicit FrameReader(std::size_t most) : most_(most) {}
  void allow(std::size_t most) { most_ = most; }

  void push(std::span<const std::byte> bytes);
  /// The next frame, nothing if it is not whole yet, or an Error if what came is no frame; then all is lost.
  Result<std::optional<Frame>> next();

 private:
  std::size_t most_;
  std::vector<std::byte> bytes_;
  std::size_t begin_ = 0;
};

}  // namespace shmem
