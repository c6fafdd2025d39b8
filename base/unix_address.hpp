// SPDX-License-Identifier: Apache-2.0
// Addresses of Unix sockets.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace base {

struct UnixAddress {
  /// A path; or a zero and a name outside the file system, which ends with its socket. What does not fit is cut off.
  explicit UnixAddress(std::string_view name) {
    const std::size_t end = name.starts_with('\0') ? 0 : 1;  // a zero
    const std::size_t length = name.copy(socket.sun_path, sizeof socket.sun_path - end);
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length + end);
    is_whole = length == name.size();
  }
  /// The same of what a user writes: '@' for the zero.
  static UnixAddress of_text(std::string text) {
    if (text.starts_with('@')) {
      text.front() = '\0';
    }
    return UnixAddress(text);
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&socket); }

  sockaddr_un socket{.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t size = 0;
  bool is_whole = false;
};

}  // namespace base
