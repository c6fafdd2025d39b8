// SPDX-License-Identifier: Apache-2.0
// The vfio-user messages that a function answers: payloads decoded, checked and encoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fake_device/function.hpp"
#include "fake_device/message.hpp"
#include "fake_device/result.hpp"

namespace fake_device {

/// What the client said of itself in VERSION.
struct ClientLimits {
  std::uint64_t max_fds = 1;
  std::uint64_t max_transfer = kMaxTransfer;
  bool write_multiple = false;
};

struct Reply {
  int error = 0;  // errno: the reply is a header only
  std::vector<std::byte> payload;
  std::vector<int> fds;  // borrowed from the function
};

/// What a client may have done before others get their turn. A part takes a microsecond or less: a register access, an
/// interrupt, a look into the socket, a descriptor.
struct Turn {
  static constexpr int kParts = 128;
  static constexpr std::size_t kPartBytes = 1024;  // that are copied
  int parts = kParts;

  [[nodiscard]] bool over() const { return parts <= 0; }
  void take(std::size_t count) { parts -= static_cast<int>(count); }
  void take_bytes(std::size_t bytes) { take(bytes / kPartBytes + 1); }
};

/// Any command but VERSION. Never throws for what the client sent; unknown commands are refused. Nothing: the turn was
/// over before the message was; to be called again with the same `done`, which begins at 0.
std::optional<Reply> run_command(Function& function, const ClientLimits& limits, VfioUserMessage& message, Time now,
                                 Turn& turn, std::uint64_t& done);

/// For the log: "refused DMA_MAP: Permission denied: " and what a client does wrong that gets this errno.
std::string describe_refusal(std::uint16_t command, int error);

/// What the client's VERSION payload says; a text that names what is wrong with it.
Result<ClientLimits> parse_version(std::span<const std::byte> payload);

/// The payload of the answer; with the header at most VFIO_USER_MAX_VERSION_REPLY bytes.
std::vector<std::byte> version_reply(const ClientLimits& limits);

}  // namespace fake_device
