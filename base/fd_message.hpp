// SPDX-License-Identifier: Apache-2.0
// Descriptors and credentials that come with messages of Unix sockets (SCM_RIGHTS, SCM_CREDENTIALS).
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>

#include "base/fd.hpp"

namespace base {

/// Sends `fds` with the message. REQUIRES: there are some, and `control` is aligned as a cmsghdr, has room for
/// CMSG_SPACE(fds.size_bytes()), and outlives the call that sends.
inline void attach_fds(msghdr& message, std::span<char> control, std::span<const int> fds) {
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(fds.size_bytes());
  cmsghdr* const part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(fds.size_bytes());
  std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
}

/// Calls `take(UniqueFd)` with each descriptor that came with the message.
template <typename Take>
void take_fds(msghdr& message, Take take) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= part->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + at, sizeof fd);
      take(UniqueFd(fd));
    }
  }
}

/// The sender of the message. Nothing unless the socket has SO_PASSCRED and the message has room for credentials.
inline std::optional<ucred> sender_of(msghdr& message) {
  std::optional<ucred> sender;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_CREDENTIALS &&
        part->cmsg_len >= CMSG_LEN(sizeof(ucred))) {
      std::memcpy(&sender.emplace(), CMSG_DATA(part), sizeof(ucred));
    }
  }
  return sender;
}

/// Bytes for sendmsg() and recvmsg(), with room for `Most` descriptors, one more if that is odd, and `Others` bytes.
template <std::size_t Most, std::size_t Others = 0>
struct FdMessage {
  iovec data{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(Most * sizeof(int)) + Others> control{};
  msghdr header{};

  /// To send them, or what they are received into. They outlive this.
  FdMessage(const void* bytes, std::size_t size) : data{const_cast<void*>(bytes), size} {
    header.msg_iov = &data;
    header.msg_iovlen = 1;
  }
  FdMessage(const FdMessage&) = delete;
  FdMessage& operator=(const FdMessage&) = delete;
  ~FdMessage() = default;

  /// No SIGPIPE.
  ssize_t send(int socket, std::span<const int> fds = {}, int flags = MSG_DONTWAIT) {
    if (!fds.empty()) {
      attach_fds(header, control, fds);
    }
    return retry([&] { return ::sendmsg(socket, &header, flags | MSG_NOSIGNAL); });
  }
  /// Descriptors are closed on exec. Without `takes_fds` they end with the message.
  ssize_t receive(int socket, int flags = MSG_DONTWAIT, bool takes_fds = true) {
    header.msg_control = takes_fds ? control.data() : nullptr;
    header.msg_controllen = takes_fds ? control.size() : 0;
    return retry([&] { return ::recvmsg(socket, &header, flags | MSG_CMSG_CLOEXEC); });
  }
};

}  // namespace base
