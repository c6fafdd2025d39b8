// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/fd_message.hpp"
#include "base/unix_address.hpp"
#include "driver/vfio_user_channel.hpp"

namespace gba {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

/// The interval between attempts to connect to a server that has no room for another connection.
constexpr milliseconds kConnectRetry{10};

bool is_other_file(const std::string& name) {
  struct stat status {};
  return !name.starts_with('@') && ::stat(name.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode);
}

Error cannot_connect(int error, const std::string& name, const std::string& shown) {
  const std::string tried = fmt::format("gba: cannot open {}: ", shown);
  if (error == ECONNREFUSED && is_other_file(name)) {
    return fail(std::errc::invalid_argument, tried + "it is not a socket");
  }
  if (error == ECONNREFUSED) {
    return fail(std::errc::connection_refused,
                tried + "connection refused (is gba-fake-device running on that socket?)");
  }
  if (error == ENOENT || error == ENOTDIR) {
    return fail(std::errc::no_such_device, tried + "no such socket (is gba-fake-device running on it?)");
  }
  if (error == EAGAIN) {
    return fail(std::errc::device_or_resource_busy, tried + "the server takes no further connection");
  }
  if (error == EPROTOTYPE) {
    return fail(std::errc::invalid_argument, tried + "it is not a stream socket");
  }
  if (error == EACCES || error == EPERM) {
    return fail(std::errc::permission_denied, tried + "permission denied (may you write to that socket?)");
  }
  return fail_errno(error, fmt::format("gba: cannot open {}", shown));
}

/// Waits until the socket is ready for `events`; false if it was not after the deadline either: a process that was
/// stopped until then finds what came meanwhile.
bool wait_ready(int socket, short events, Deadline deadline) {
  for (;;) {
    const bool last = deadline.passed();
    pollfd ready{.fd = socket, .events = events, .revents = 0};
    const nanoseconds left = deadline.left(seconds{1});
    const timespec limit{.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
    if (::ppoll(&ready, 1, &limit, nullptr) > 0) {
      return true;
    }
    if (last) {
      return false;
    }
  }
}

Error no_answer() {
  return fail(std::errc::timed_out, "no answer in time");
}

/// After a transfer that moved nothing: success if it is worth another try.
Result<void> after_failed_transfer(int error, int socket, short events, Deadline deadline) {
  if (error == EAGAIN) {
    if (wait_ready(socket, events, deadline)) {
      return {};
    }
    return no_answer();
  }
  if (error == EPIPE || error == ECONNRESET) {
    return fail(std::errc::not_connected, "connection closed");
  }
  return fail(std::errc{error}, errno_text(error));
}

}  // namespace

Result<base::UniqueFd> connect_unix(const std::string& name, const std::string& shown, Deadline deadline) {
  const auto address = base::UnixAddress::of_text(name);
  if (!address.is_whole) {
    return fail(std::errc::invalid_argument,
                fmt::format("gba: cannot open {}: the name of a Unix socket has at most {} bytes", shown,
                            sizeof(sockaddr_un::sun_path) - 1));
  }
  base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    return fail_errno(errno, fmt::format("gba: cannot make a socket to open {}", shown));
  }
  // A blocking connect would wait without end for room in the server's queue.
  while (::connect(socket.get(), address.get(), address.size) != 0) {
    const int error = errno;
    if (error != EINTR && (error != EAGAIN || deadline.passed())) {
      return cannot_connect(error, name, shown);
    }
    std::this_thread::sleep_for(kConnectRetry);
  }
  return socket;
}

bool await_input(int socket, Deadline deadline) {
  return wait_ready(socket, POLLIN, deadline);
}

Result<void> send_bytes(int socket, std::span<const std::byte> bytes, std::span<const int> fds, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = base::FdMessage<kMaxMessageFds>(bytes.data(), bytes.size()).send(socket, fds);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
      fds = {};
    } else if (auto retry = after_failed_transfer(errno, socket, POLLOUT, deadline); !retry) {
      return retry;
    }
  }
  return {};
}

Result<void> receive_bytes(int socket, std::span<std::byte> bytes, std::vector<base::UniqueFd>& fds, Deadline deadline,
                           pid_t* sender) {
  while (!bytes.empty()) {
    base::FdMessage<kMaxMessageFds, CMSG_SPACE(sizeof(ucred))> message(bytes.data(), bytes.size());
    const ssize_t got = message.receive(socket);
    if (got == 0) {
      return fail(std::errc::not_connected, "connection closed");
    }
    if (got < 0) {
      if (auto retry = after_failed_transfer(errno, socket, POLLIN, deadline); !retry) {
        return retry;
      }
      continue;
    }
    base::take_fds(message.header, [&](base::UniqueFd fd) { fds.push_back(std::move(fd)); });
    if (sender != nullptr) {
      *sender = base::sender_of(message.header).value_or(ucred{}).pid;
    }
    if ((message.header.msg_flags & MSG_CTRUNC) != 0 || fds.size() > kMaxMessageFds) {
      return fail(std::errc::protocol_error, "more file descriptors than fit (is the limit of open files reached?)");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

}  // namespace gba
