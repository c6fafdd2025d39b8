// SPDX-License-Identifier: Apache-2.0
// A socket to which others connect.
#pragma once

#include <chrono>
#include <concepts>
#include <optional>
#include <utility>

#include "base/fd.hpp"
#include "base/private_fd.hpp"
#include "base/result.hpp"
#include "wire/endpoint.hpp"

namespace wire {

/// Accepts some connections in a turn, so that a flood lets the thread do its other work. Where none can be accepted,
/// mostly because this process is out of file descriptors, it pauses, and they stay in the kernel's queue. Used by one
/// thread.
class Listener {
 public:
  using Clock = std::chrono::steady_clock;
  /// Connections that are accepted in a turn.
  static constexpr int kMostAtOnce = 64;

  /// `socket` is one of listen_at().
  Listener(base::UniqueFd socket, std::chrono::milliseconds pause) : socket_(std::move(socket)), pause_(pause) {}
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  Listener(Listener&&) = default;
  Listener& operator=(Listener&&) = default;
  ~Listener() { close(); }

  /// To wait for; -1 during a pause and after close().
  [[nodiscard]] int fd() const { return paused_until_ ? -1 : socket_.get(); }
  [[nodiscard]] std::optional<Clock::time_point> paused_until() const { return paused_until_; }
  /// True if a pause has ended: fd() is to be waited for again.
  bool resume(Clock::time_point now) {
    if (!paused_until_ || now < *paused_until_) {
      return false;
    }
    paused_until_.reset();
    return true;
  }
  /// Closes the socket, so that no process can connect any more, and removes the path of a Unix socket.
  void close();

  /// Hands over what has connected, as take(socket, where from). An Error says why it pauses from now on.
  template <std::invocable<base::UniqueFd, const Endpoint&> Take>
  base::Result<void> accept(Take take) {
    for (int i = 0; i < kMostAtOnce && fd() >= 0; ++i) {
      Endpoint from;
      auto socket = accept_one(from);
      if (!socket) {
        paused_until_ = Clock::now() + pause_;
        return socket.error();
      }
      if (!*socket) {
        break;
      }
      take(*std::move(socket), from);
    }
    return {};
  }

 private:
  /// No descriptor: nobody waits.
  base::Result<base::UniqueFd> accept_one(Endpoint& from);

  base::PrivateFd socket_;
  std::chrono::milliseconds pause_;
  std::optional<Clock::time_point> paused_until_;
};

}  // namespace wire
