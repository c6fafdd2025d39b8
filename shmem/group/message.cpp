// SPDX-License-Identifier: Apache-2.0
#include "shmem/group/message.hpp"

#include <fmt/format.h>

namespace shmem {

ErrorPointer no_memory_for_call(int rank) {
  return std::make_shared<const Error>(fail(
      std::errc::not_enough_memory, fmt::format("shmem: rank {}: there is no memory for a call of the group", rank)));
}

ErrorPointer compare_ends(int me, GroupMessage& message, const MessageEnd& other) {
  message.peer_type = other.type;
  if (message.fits(other)) {
    return nullptr;
  }
  const bool sends = message.way == GroupMessage::Way::kSend;
  const MessageEnd mine{message.size, message.type};
  const MessageEnd& sent = sends ? mine : other;
  const MessageEnd& received = sends ? other : mine;
  const auto what =
      fmt::format("shmem: PE {}: a message {} PE {} with tag {}", me, sends ? "to" : "of", message.peer, message.tag);
  if (sent.type != received.type && sent.type != 0 && received.type != 0) {
    return std::make_shared<const Error>(
        fail(std::errc::wrong_protocol_type,
             fmt::format("{} is of type {} ({} bytes); the call that receives it is of type {} ({} bytes)", what,
                         sent.type, sent.size, received.type, received.size)));
  }
  return std::make_shared<const Error>(
      fail(std::errc::message_size,
           fmt::format("{} has {} bytes; the call that receives it has room for {}", what, sent.size, received.size)));
}

}  // namespace shmem
