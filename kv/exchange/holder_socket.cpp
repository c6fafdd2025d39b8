// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/holder_socket.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/fd_message.hpp"

namespace shmem::exchange {

using HolderEnvelope = base::FdMessage<std::tuple_size_v<HolderSocket::Files>>;

std::errc HolderSocket::send(const void* message, std::size_t bytes, std::span<const int> files) {
  return HolderEnvelope(message, bytes).send(fd(), files) < 0 ? static_cast<std::errc>(errno) : std::errc{};
}

std::errc HolderSocket::receive(HolderBuffer& message, Files* files) {
  message.size = 0;
  HolderEnvelope envelope(message.bytes.data(), sizeof(HolderHead));
  // A look first. The message stays, with its files: what the kernel cannot hand over it would otherwise close here.
  const ssize_t there = envelope.receive(fd(), MSG_DONTWAIT | MSG_PEEK, files != nullptr);
  if (there < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    return std::errc::resource_unavailable_try_again;
  }
  if (there <= 0) {
    return std::errc::connection_reset;
  }
  if (files != nullptr) {
    std::size_t count = 0;
    base::take_fds(envelope.header, [&](base::UniqueFd file) { (*files)[count++] = std::move(file); });
  }
  if ((envelope.header.msg_flags & MSG_CTRUNC) != 0) {
    return std::errc::protocol_error;
  }
  // Its files have descriptors here, so that this closes none of them.
  envelope.data.iov_len = message.bytes.size();
  const ssize_t got = envelope.receive(fd(), MSG_DONTWAIT, false);
  if (got <= 0) {
    return std::errc::connection_reset;
  }
  message.size = static_cast<std::size_t>(got);
  return (envelope.header.msg_flags & MSG_TRUNC) == 0 && got >= ssize_t{sizeof(HolderHead)} ? std::errc{}
                                                                                            : std::errc::protocol_error;
}

void HolderSocket::shut() {
  ::shutdown(fd(), SHUT_RDWR);
}

}  // namespace shmem::exchange
