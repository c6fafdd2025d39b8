// SPDX-License-Identifier: Apache-2.0
#include "fake_device/socket_io.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "fake_device/message.hpp"

namespace fake_device {
namespace {

// One more than a client may send, so that too many is told from just enough.
constexpr std::size_t kRoomForFds = kMaxFds + 1;

struct alignas(cmsghdr) ControlBuffer {
  std::array<char, CMSG_SPACE(kRoomForFds * sizeof(int))> bytes{};
};

std::vector<UniqueFd> take_fds(msghdr& header) {
  std::vector<UniqueFd> fds;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t index = 0; index < count; ++index) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + index * sizeof fd, sizeof fd);
      fds.emplace_back(fd);
    }
  }
  return fds;
}

}  // namespace

ssize_t send_some(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  iovec part{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  ControlBuffer control;
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control.bytes.data();
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

Received receive_some(int socket, std::span<std::byte> room) {
  iovec part{.iov_base = room.data(), .iov_len = room.size()};
  ControlBuffer control;
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes.data();
  header.msg_controllen = control.bytes.size();
  Received result;
  do {
    result.count = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (result.count < 0 && errno == EINTR);
  if (result.count < 0) {
    result.error = errno;
    return result;
  }
  result.fds = take_fds(header);
  result.fds_lost = (header.msg_flags & MSG_CTRUNC) != 0;
  return result;
}

}  // namespace fake_device
