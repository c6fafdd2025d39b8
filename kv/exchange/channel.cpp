// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/channel.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/fd_message.hpp"
#include "base/user.hpp"

namespace shmem::exchange {
namespace {

constexpr int kBacklog = 128;

struct SeatAddress {
  sockaddr_un socket{};
  socklen_t size = 0;
  [[nodiscard]] const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&socket); }
};

SeatAddress address_of(const std::string& exchange, std::uint32_t seat) {
  // The user is in the name, so that two users may have exchanges of one name. A leading 0: not in the file system.
  const std::string name = fmt::format("shmem-exchange/{}/{}/{}", ::geteuid(), exchange, seat);
  static_assert(sizeof("shmem-exchange/4294967295//63") + kMostNameBytes + kMostNodeBytes <
                sizeof(sockaddr_un::sun_path));
  SeatAddress address;
  address.socket.sun_family = AF_UNIX;
  std::memcpy(address.socket.sun_path + 1, name.data(), std::min(name.size(), sizeof(address.socket.sun_path) - 1));
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

base::UniqueFd new_socket() {
  return base::UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

ucred credentials_of(int socket) {
  ucred peer{.pid = 0, .uid = static_cast<uid_t>(-1), .gid = static_cast<gid_t>(-1)};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    peer.uid = static_cast<uid_t>(-1);
  }
  return peer;
}

/// The parts of a message for the kernel.
struct Envelope {
  iovec data{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostMessageFds * sizeof(int))> control{};
  msghdr header{};

  explicit Envelope(Message& message) {
    data = {.iov_base = &message, .iov_len = sizeof message};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
  }
  Envelope(const Envelope&) = delete;
  Envelope& operator=(const Envelope&) = delete;
  ~Envelope() = default;
};

ssize_t receive_bytes(int socket, msghdr& header, int flags) {
  ssize_t got = -1;
  do {
    got = ::recvmsg(socket, &header, flags | MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  return got;
}

}  // namespace

Result<Channel> Channel::connect(const std::string& exchange, std::uint32_t seat) {
  base::UniqueFd socket = new_socket();
  const SeatAddress address = address_of(exchange, seat);
  if (!socket || ::connect(socket.get(), address.data(), address.size) != 0) {
    return fail_errno(errno, fmt::format("cannot connect to seat {} of exchange {}", seat, exchange));
  }
  return Channel(std::move(socket));
}

pid_t Channel::peer() const {
  return credentials_of(fd()).pid;
}

bool Channel::is_our_user() const {
  return base::is_this_user(credentials_of(fd()).uid);
}

std::errc Channel::send(const Message& message, std::span<const int> files) {
  Message copy = message;
  Envelope envelope(copy);
  if (!files.empty()) {
    base::attach_fds(envelope.header, envelope.control, files);
  }
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(fd(), &envelope.header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? static_cast<std::errc>(errno) : std::errc{};
}

void Channel::shut() {
  ::shutdown(fd(), SHUT_RDWR);
}

std::errc Channel::receive(std::optional<Received>& received, std::size_t most_files) {
  received.reset();
  Received came;
  Envelope envelope(came.message);
  if (most_files > 0) {
    envelope.header.msg_control = envelope.control.data();
    envelope.header.msg_controllen = envelope.control.size();
  }
  // The message stays, with its files: what the kernel cannot hand over it would otherwise close here.
  const ssize_t got = receive_bytes(fd(), envelope.header, MSG_PEEK | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    return {};
  }
  if (got <= 0) {
    return std::errc::connection_reset;
  }
  std::size_t files = 0;
  base::take_fds(envelope.header, [&](base::UniqueFd file) { came.files[files++] = std::move(file); });
  const int flags = envelope.header.msg_flags;
  received = std::move(came);
  if ((flags & MSG_CTRUNC) != 0) {
    return files < most_files ? std::errc::too_many_files_open : std::errc::protocol_error;
  }
  // Its files have descriptors here, so that this closes none of them.
  envelope.header.msg_control = nullptr;
  envelope.header.msg_controllen = 0;
  if (receive_bytes(fd(), envelope.header, 0) != got) {
    return std::errc::connection_reset;
  }
  // Before the size, which may be another one in another version.
  const std::uint32_t protocol = received->message.protocol;
  if (got >= static_cast<ssize_t>(sizeof protocol) && is_other_version(protocol)) {
    return std::errc::protocol_not_supported;
  }
  const bool is_whole = got == static_cast<ssize_t>(sizeof(Message)) && (flags & MSG_TRUNC) == 0;
  return is_whole && protocol == kProtocol ? std::errc{} : std::errc::protocol_error;
}

Result<Listener> Listener::open(const std::string& exchange) {
  if (base::is_user_unknown()) {
    return fail(std::errc::permission_denied,
                fmt::format("exchange {}: this process runs as user {}, which stands for all users that are unknown in "
                            "its user namespace: members cannot be told from their processes; run it as another user",
                            exchange, ::geteuid()));
  }
  for (std::uint32_t seat = 0; seat < kMostMembers; ++seat) {
    base::UniqueFd socket = new_socket();
    const SeatAddress address = address_of(exchange, seat);
    if (socket && ::bind(socket.get(), address.data(), address.size) == 0 && ::listen(socket.get(), kBacklog) == 0) {
      return Listener(std::move(socket), seat);
    }
    if (!socket || errno != EADDRINUSE) {
      return fail_errno(errno, fmt::format("cannot make the socket of seat {} of exchange {}", seat, exchange));
    }
  }
  return fail(
      static_cast<std::errc>(EUSERS),
      fmt::format("exchange {} has {} members already; leave one, or open another exchange", exchange, kMostMembers));
}

std::optional<Channel> Listener::accept() {
  base::UniqueFd socket(::accept4(fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  return socket ? std::optional(Channel(std::move(socket))) : std::nullopt;
}

void Listener::shut() {
  ::shutdown(fd(), SHUT_RDWR);
}

}  // namespace shmem::exchange
