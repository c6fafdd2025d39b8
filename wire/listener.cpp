// SPDX-License-Identifier: Apache-2.0
#include "wire/listener.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace wire {

base::Result<base::UniqueFd> Listener::accept_one(Endpoint& from) {
  for (;;) {
    from.size = sizeof from.storage;
    base::UniqueFd socket(
        ::accept4(socket_.get(), reinterpret_cast<sockaddr*>(&from.storage), &from.size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      prepare_connection(socket.get());
      return socket;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return base::UniqueFd();
    }
    if (errno != EINTR && errno != ECONNABORTED) {
      return base::fail_errno(errno, "accept");
    }
  }
}

}  // namespace wire
