// SPDX-License-Identifier: Apache-2.0
// Descriptors that come with messages of Unix sockets (SCM_RIGHTS).
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstring>
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

}  // namespace base
