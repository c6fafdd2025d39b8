// SPDX-License-Identifier: Apache-2.0
// Names of Unix sockets outside the file system.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

#include "base/random_name.hpp"
#include "base/user.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// The address of the socket "shmem-" and a name that cannot be guessed.
struct AbstractSocket {
  explicit AbstractSocket(const base::RandomName& name) {
    constexpr char kPrefix[] = {'\0', 's', 'h', 'm', 'e', 'm', '-'};  // a leading 0: not in the file system
    socket.sun_family = AF_UNIX;
    std::memcpy(socket.sun_path, kPrefix, sizeof(kPrefix));
    std::memcpy(socket.sun_path + sizeof(kPrefix), name.data(), name.size());
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + sizeof(kPrefix) + name.size());
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&socket); }

  sockaddr_un socket{};
  socklen_t size = 0;
};

/// An Error if this process cannot tell PEs from processes of other users.
inline Result<void> check_user_is_known() {
  if (!base::is_user_unknown()) {
    return {};
  }
  return fail(std::errc::permission_denied,
              "cannot make a Unix socket for the node's PEs: this user's number stands for all users that are unknown "
              "in the user namespace, so that PEs cannot be told from their processes; use another user");
}

}  // namespace shmem
