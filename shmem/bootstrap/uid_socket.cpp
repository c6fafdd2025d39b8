// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/uid_socket.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>

namespace shmem {

namespace {

using Clock = std::chrono::steady_clock;

void set(int socket, int level, int option, int value) {
  // Best effort: the bootstrap works without any of these, if less well.
  static_cast<void>(::setsockopt(socket, level, option, &value, sizeof(value)));
}

/// False if `socket` was not ready before the deadline.
bool await(int socket, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd poll{socket, events, 0};
    const int ready = ::poll(&poll, 1, static_cast<int>(std::clamp<long>(left.count(), 0, 60'000)));
    if (ready > 0) return true;
    if (ready == 0 && left.count() <= 60'000) return false;
  }
}

Result<void> await_connection(int socket, Clock::time_point deadline) {
  if (!await(socket, POLLOUT, deadline)) return fail(std::errc::timed_out, "no answer");
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return fail_errno(error, "connect");
  return {};
}

}  // namespace

void prepare_connection(int socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 20);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 6);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
}

Result<UniqueFd> listen_at(Endpoint& where) {
  UniqueFd socket(::socket(where.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fail_errno(errno, "shmem: cannot listen at " + where.text() + ": socket");
  // A port that was asked for can be had again while connections of an earlier job are in TIME_WAIT. Linux still
  // refuses it while anybody listens there.
  if (where.port() != 0) set(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(socket.get(), where.get(), where.size) != 0) {
    return fail_errno(errno, "shmem: cannot listen at " + where.text() + ": bind");
  }
  if (::listen(socket.get(), SOMAXCONN) != 0) {
    return fail_errno(errno, "shmem: cannot listen at " + where.text() + ": listen");
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return fail_errno(errno, "shmem: cannot listen at " + where.text() + ": getsockname");
  }
  where = Endpoint::of(reinterpret_cast<const sockaddr*>(&bound));
  return socket;
}

Result<UniqueFd> connect_to(const Endpoint& where, Clock::time_point deadline) {
  UniqueFd socket(::socket(where.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fail_errno(errno, "socket");
  prepare_connection(socket.get());
  if (::connect(socket.get(), where.get(), where.size) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return fail_errno(errno, "connect");
    if (auto connected = await_connection(socket.get(), deadline); !connected) {
      return tl::make_unexpected(connected.error());
    }
  }
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags & ~O_NONBLOCK) != 0) return fail_errno(errno, "fcntl");
  return socket;
}

Result<void> send_all(int socket, std::span<const std::byte> bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!await(socket, POLLOUT, deadline)) return fail(std::errc::timed_out, "nothing more is taken");
    } else if (errno != EINTR) {
      return fail_errno(errno, "send");
    }
  }
  return {};
}

}  // namespace shmem
