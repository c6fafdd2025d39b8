// SPDX-License-Identifier: Apache-2.0
// Messages on their way to a client that may read slowly, or never.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "uapi/vfio_user.h"

namespace fake_device {

/// Past this many bytes the session stops taking requests until the client has read its replies.
inline constexpr std::size_t kOutboxLimit = 0x40000;

/// Used by one thread. Does not own the descriptors that it sends: they must live as long as it does.
class Outbox {
 public:
  /// Appends a message; sets header.msg_size.
  void push(vfio_user_header header, std::span<const std::byte> payload, std::vector<int> fds);
  /// Sends what the socket takes, without waiting. False: the connection is dead.
  bool flush(int socket);
  [[nodiscard]] bool empty() const { return messages_.empty(); }
  [[nodiscard]] bool full() const { return bytes_ >= kOutboxLimit; }

 private:
  struct Outgoing {
    std::vector<std::byte> bytes;
    std::vector<int> fds;  // go with the first byte
    std::size_t sent = 0;
  };
  std::deque<Outgoing> messages_;
  std::size_t bytes_ = 0;
};

}  // namespace fake_device
