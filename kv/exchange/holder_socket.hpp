// SPDX-License-Identifier: Apache-2.0
// A connection between an engine and the holder of its exchange.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <system_error>

#include "base/fd.hpp"
#include "base/private_fd.hpp"
#include "kv/exchange/holder_messages.hpp"

namespace shmem::exchange {

/// One end. Nothing waits: these calls return at once. Used by one thread at a time.
class HolderSocket {
 public:
  using Files = std::array<base::UniqueFd, 2>;

  HolderSocket() = default;
  explicit HolderSocket(base::UniqueFd socket) : socket_(std::move(socket)) {}

  [[nodiscard]] int fd() const { return socket_.get(); }
  explicit operator bool() const { return static_cast<bool>(socket_); }

  /// Errors: EAGAIN the other end has not taken earlier messages; EPIPE, ECONNRESET it has gone.
  std::errc send(const void* message, std::size_t bytes, std::span<const int> files = {});
  /// Errors: EAGAIN there is no message; ECONNRESET the other end has gone; EPROTO a message that is too large, or has
  /// descriptors that are not expected, which stay in the socket. `files`, if not null, gets descriptors that came.
  /// Nothing that came is closed here, since that may take as long as the other process likes: the caller ends this,
  /// and `files`, where no call waits for it (Disposal).
  std::errc receive(HolderBuffer& message, Files* files = nullptr);
  /// The other end sees the end of the connection, as after the end of this object, which may come later.
  void shut();

 private:
  base::PrivateFd socket_;
};

}  // namespace shmem::exchange
