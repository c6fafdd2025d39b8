// SPDX-License-Identifier: Apache-2.0
// vfio-user over a Unix stream socket: bytes and file descriptors, requests and replies.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/fd.hpp"
#include "base/process_activity.hpp"
#include "driver/backend.hpp"
#include "driver/process_hooks.hpp"
#include "driver/result.hpp"
#include "driver/wait.hpp"
#include "uapi/vfio_user.h"

namespace gba {

/// The most file descriptors that one message may carry to us.
constexpr std::size_t kMaxMessageFds = 8;

/// A non-blocking stream socket connected to the server at `name`: a path, or with a leading '@' an abstract name.
/// `shown` is what the user gave, for the error text. Errors are those of gba_open.
Result<base::UniqueFd> connect_unix(const std::string& name, const std::string& shown, Deadline deadline);

/// Sends all of `bytes`, with `fds` alongside the first of them. The text of an error says only what came back:
/// "connection closed", "no answer in time".
Result<void> send_bytes(int socket, std::span<const std::byte> bytes, std::span<const int> fds, Deadline deadline);

/// Waits until there is something to receive, or the connection has ended; false after the deadline.
bool await_input(int socket, Deadline deadline);

/// Fills `bytes`. File descriptors that come alongside are appended to `fds`. `sender`, if not null, becomes the
/// process that sent them, if the socket has SO_PASSCRED, else 0. Errors as above.
Result<void> receive_bytes(int socket, std::span<std::byte> bytes, std::vector<base::UniqueFd>& fds, Deadline deadline,
                           pid_t* sender = nullptr);

/// The bytes of a wire struct.
template <typename T>
std::span<const std::byte> wire_bytes(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_bytes(std::span(&value, 1));
}

struct Reply {
  int error = 0;  // errno of an error reply, whose payload is empty
  std::vector<std::byte> payload;
  std::vector<base::UniqueFd> fds;
  pid_t sender = 0;  // of VERSION's reply: the server's process, if it can be seen

  /// The wire struct at `offset` of the payload. REQUIRES: offset + sizeof(T) <= payload.size().
  template <typename T>
  [[nodiscard]] T get(std::size_t offset = 0) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    std::memcpy(&value, payload.data() + offset, sizeof(T));
    return value;
  }
};

/// One connection. Thread-safe: requests of several threads go one after the other. A server that closes the
/// connection, breaks the protocol or does not answer in time *breaks* the channel: that and all later calls fail as
/// calls on a device that was lost so. An error reply breaks nothing; its errno is the code of the error.
///
/// In time: a server that has work to do may take as long as kReplyTimeout, in which the time that it or this process
/// waits for a processor does not count, and at most kLongestReply. One that does nothing for kLongestIdle, although a
/// request waits for it, does not answer: it is stopped, frozen or stuck.
class VfioUserChannel {
 public:
  static constexpr std::chrono::seconds kReplyTimeout{5};
  static constexpr std::chrono::seconds kLongestReply{60};
  static constexpr std::chrono::milliseconds kLongestIdle{200};

  /// `peer` names the server in error texts.
  VfioUserChannel(base::UniqueFd socket, std::string peer, std::chrono::nanoseconds reply_timeout = kReplyTimeout);

  /// VERSION, the first message of a connection. Errors: those of gba_open.
  Result<void> negotiate();

  /// Sends `payload` (and `fds`) and waits for the reply, whose payload has at least `reply_size` bytes. The fds stay
  /// the caller's.
  Result<Reply> request(vfio_user_command command, std::span<const std::byte> payload, std::size_t reply_size = 0,
                        std::span<const int> fds = {});
  /// Sends a command that is not answered.
  Result<void> post(vfio_user_command command, std::span<const std::byte> payload);

  /// How it was broken; kNone if it is not broken.
  [[nodiscard]] Loss broken() const { return broken_.load(std::memory_order_relaxed); }
  /// Breaks the channel: both ends see the connection end.
  void shut_down(Loss why);
  /// Sees POLLRDHUP when the connection ends.
  [[nodiscard]] int socket() const { return socket_.get(); }
  [[nodiscard]] const std::string& peer() const { return peer_; }

 private:
  // These fail only if the exchange itself failed; the text says how. An error reply is a Reply.
  Result<std::uint16_t> send(vfio_user_command command, std::span<const std::byte> payload, std::span<const int> fds,
                             std::uint32_t flags);
  Result<Reply> receive(vfio_user_command command, std::uint16_t id, std::size_t reply_size);
  Result<void> await_reply();
  Result<Reply> exchange(vfio_user_command command, std::span<const std::byte> payload, std::size_t reply_size,
                         std::span<const int> fds);
  Error break_with(const Error& cause, vfio_user_command command);

  const base::PrivateFd socket_;
  const std::string peer_;
  const std::chrono::nanoseconds reply_timeout_;

  ForkMutex mutex_;               // held from a request to its reply; guards what follows
  base::ProcessActivity server_;  // the process that listens; then that which has answered VERSION
  bool ready_ = false;            // VERSION has been answered
  std::uint16_t next_id_ = 0;     // of the next message

  std::atomic<Loss> broken_{Loss::kNone};  // relaxed: nothing else is published by it
};

}  // namespace gba
