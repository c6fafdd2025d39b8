// SPDX-License-Identifier: Apache-2.0
// Whether a process at the other end of a Unix socket is of this process's user.
#pragma once

#include <sys/types.h>

namespace base {

/// In a user namespace, the kernel gives one number for all users that are unknown there (65534, "nobody"), in
/// SO_PEERCRED for instance. A process with that number itself cannot tell those of its user from them.
bool is_user_unknown();

/// `other`: from SO_PEERCRED. False if that cannot be known.
bool is_this_user(uid_t other);

}  // namespace base
