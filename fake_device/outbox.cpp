// SPDX-License-Identifier: Apache-2.0
#include "fake_device/outbox.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "fake_device/socket_io.hpp"

namespace fake_device {

void Outbox::push(vfio_user_header header, std::span<const std::byte> payload, std::vector<int> fds) {
  header.msg_size = static_cast<std::uint32_t>(sizeof header + payload.size());
  Outgoing message{.bytes = std::vector<std::byte>(header.msg_size), .fds = std::move(fds)};
  std::memcpy(message.bytes.data(), &header, sizeof header);
  std::copy(payload.begin(), payload.end(), message.bytes.begin() + sizeof header);
  bytes_ += message.bytes.size();
  messages_.push_back(std::move(message));
}

bool Outbox::flush(int socket) {
  while (!messages_.empty()) {
    Outgoing& front = messages_.front();
    const auto rest = std::span<const std::byte>(front.bytes).subspan(front.sent);
    const auto sent = send_some(socket, rest, front.fds);
    if (sent < 0) {
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
    front.fds.clear();
    front.sent += static_cast<std::size_t>(sent);
    if (front.sent == front.bytes.size()) {
      bytes_ -= front.bytes.size();
      messages_.pop_front();
    }
  }
  return true;
}

}  // namespace fake_device
