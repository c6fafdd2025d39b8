// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/channel.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/fd_message.hpp"
#include "base/user.hpp"

namespace shmem::exchange {

using Envelope = base::FdMessage<kMostMessageFds>;

Result<Channel> Channel::connect(const MeetingPlace& place, std::uint32_t seat) {
  auto socket = connect_in(place, std::to_string(seat));
  return socket ? Result<Channel>(Channel(*std::move(socket))) : socket.error();
}

pid_t Channel::peer() const {
  const auto peer = base::peer_of(fd());
  return peer ? peer->pid : 0;
}

bool Channel::is_our_user() const {
  return base::is_peer_this_user(fd());
}

std::errc Channel::send(const ChannelMessage& message, std::span<const int> files) {
  return Envelope(&message, sizeof message).send(fd(), files) < 0 ? static_cast<std::errc>(errno) : std::errc{};
}

void Channel::shut() {
  ::shutdown(fd(), SHUT_RDWR);
}

std::errc Channel::receive(std::optional<Received>& received, std::size_t most_files) {
  received.reset();
  Received came;
  Envelope envelope(&came.message, sizeof came.message);
  // The message stays, with its files: what the kernel cannot hand over it would otherwise close here.
  const bool takes_files = most_files > 0 && most_files != kLeaveMessagesWithFds;
  const ssize_t got = envelope.receive(fd(), MSG_DONTWAIT | MSG_PEEK, takes_files);
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
  if (envelope.receive(fd(), MSG_DONTWAIT, false) != got) {
    return std::errc::connection_reset;
  }
  // Before the size, which may be another one in another version.
  const std::uint32_t protocol = received->message.protocol;
  if (got >= static_cast<ssize_t>(sizeof protocol) && is_other_version(protocol)) {
    return std::errc::protocol_not_supported;
  }
  const bool is_whole = got == static_cast<ssize_t>(sizeof(ChannelMessage)) && (flags & MSG_TRUNC) == 0;
  return is_whole && protocol == kProtocol ? std::errc{} : std::errc::protocol_error;
}

Result<SeatSocket> SeatSocket::open(const MeetingPlace& place) {
  if (auto usable = check_place(place); !usable) {
    return usable.error();
  }
  for (std::uint32_t seat = 0; seat < kMostMembers; ++seat) {
    auto socket = PlaceSocket::open(place, std::to_string(seat));
    if (!socket) {
      return socket.error();
    }
    if (*socket) {
      return SeatSocket{std::move(**socket), seat};
    }
  }
  return fail(static_cast<std::errc>(EUSERS),
              fmt::format("exchange {} has {} members already; leave one, or open another exchange", place.exchange,
                          kMostMembers));
}

}  // namespace shmem::exchange
