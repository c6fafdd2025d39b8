// SPDX-License-Identifier: Apache-2.0
// The process at the other end of a Unix socket, and whether it is of this process's user.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <optional>

namespace base {

/// The process that connected, or that made the listening socket. Nothing, and errno: the kernel does not say.
std::optional<ucred> peer_of(int socket);

/// In a user namespace, the kernel gives one number for all users that are unknown there (65534, "nobody"), in
/// peer_of() for instance. A process with that number itself cannot tell those of its user from them.
bool is_user_unknown();

/// `other`: from peer_of(). False if that cannot be known.
bool is_this_user(uid_t other);
/// peer_of() is.
bool is_peer_this_user(int socket);

}  // namespace base
