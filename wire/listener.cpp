// SPDX-License-Identifier: Apache-2.0
#include "wire/listener.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

namespace wire {

void Listener::close() {
  sockaddr_un path{};
  socklen_t size = sizeof path;
  // After a fork the descriptor is another one in the child, which has no path.
  if (socket_ && ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&path), &size) == 0 &&
      path.sun_family == AF_UNIX && path.sun_path[0] != '\0') {
    ::unlink(path.sun_path);
  }
  socket_.reset();
  paused_until_.reset();
}

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
