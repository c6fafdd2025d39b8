// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/link_connection.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>

namespace shmem::exchange {

std::unique_ptr<LinkConnection> LinkConnection::connect(const Endpoint& place, Clock::time_point deadline) {
  base::UniqueFd socket(::socket(place.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    return nullptr;
  }
  wire::prepare_connection(socket.get());
  const bool connected = ::connect(socket.get(), place.get(), place.size) == 0;
  if (!connected && errno != EINPROGRESS) {
    return nullptr;
  }
  auto made = std::make_unique<LinkConnection>(std::move(socket), place, true, deadline);
  made->state = State::kConnecting;
  return made;
}

short LinkConnection::events() const {
  if (state == State::kConnecting) {
    return POLLOUT;
  }
  return static_cast<short>(frames_.unsent() == 0 ? POLLIN : POLLIN | POLLOUT);
}

bool LinkConnection::finish_connecting() {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
    failure = std::make_error_code(static_cast<std::errc>(error)).message();
    return false;
  }
  state = State::kGreeting;
  return true;
}

}  // namespace shmem::exchange
