// SPDX-License-Identifier: Apache-2.0
#include "kv/service/link_connection.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace shmem::exchange {

std::unique_ptr<LinkConnection> LinkConnection::connect(const Endpoint& place, Clock::time_point deadline) {
  base::UniqueFd socket(::socket(place.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    return nullptr;
  }
  prepare_connection(socket.get());
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
  return static_cast<short>(unsent_.empty() ? POLLIN : POLLIN | POLLOUT);
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

bool LinkConnection::send(const FrameBytes& frame) {
  if (unsent_.size() + frame->size() > kMostUnsent) {
    return false;
  }
  unsent_.insert(unsent_.end(), frame->begin(), frame->end());
  if (seals_) {
    const Seal seal = seals_->next(*frame);
    const auto bytes = std::as_bytes(std::span(seal));
    unsent_.insert(unsent_.end(), bytes.begin(), bytes.end());
  }
  return write();
}

bool LinkConnection::write() {
  while (!unsent_.empty()) {
    const ssize_t sent = ::send(fd(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) {
      continue;
    }
    if (sent < 0) {
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
    unsent_.erase(unsent_.begin(), unsent_.begin() + sent);
  }
  return true;
}

bool LinkConnection::read() {
  // Once: the next poll() returns at once if there is more. So a member that floods this one gets its turn only.
  std::array<std::byte, 16384> bytes;
  ssize_t got = -1;
  do {
    got = ::recv(fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    return errno == EAGAIN || errno == EWOULDBLOCK;
  }
  reader_.push(std::span(bytes).first(static_cast<std::size_t>(got)));
  return got > 0;
}

}  // namespace shmem::exchange
