// SPDX-License-Identifier: Apache-2.0
// A byte stream cut into vfio-user messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fake_device/unique_fd.hpp"
#include "uapi/vfio_user.h"

namespace fake_device {

/// What one side accepts; sent to the client in the VERSION reply.
inline constexpr std::uint32_t kMaxTransfer = 0x10000;
inline constexpr std::uint32_t kMaxMessage = kMaxTransfer + 0x1000;
inline constexpr unsigned kMaxFds = 16;

struct Message {
  vfio_user_header header{};
  std::vector<std::byte> payload;
  std::vector<UniqueFd> fds;

  [[nodiscard]] bool is_command() const { return (header.flags & VFIO_USER_TYPE_MASK) == VFIO_USER_TYPE_COMMAND; }
  [[nodiscard]] bool is_reply() const { return (header.flags & VFIO_USER_TYPE_MASK) == VFIO_USER_TYPE_REPLY; }
  [[nodiscard]] bool wants_reply() const { return (header.flags & VFIO_USER_NO_REPLY) == 0; }
};

/// Puts messages together from however few bytes come. It never asks for bytes past the current message, so file
/// descriptors that come with a read belong to that message. No I/O; used by one thread.
class MessageReader {
 public:
  MessageReader();

  /// Where the next bytes go; never empty. Valid until commit().
  [[nodiscard]] std::span<std::byte> room();
  /// `count` bytes of room() have been filled, and `fds` came with them. False: what came cannot be a message, and
  /// where the next one would begin is not known.
  bool commit(std::size_t count, std::vector<UniqueFd> fds);
  /// The message, once it is complete. Take it before asking for room again.
  std::optional<Message> take();

 private:
  [[nodiscard]] bool header_complete() const { return have_ >= sizeof(vfio_user_header); }

  Message message_;
  std::size_t have_ = 0;  // bytes of the message, header included
  std::size_t size_ = sizeof(vfio_user_header);
};

}  // namespace fake_device
