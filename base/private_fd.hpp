// SPDX-License-Identifier: Apache-2.0
// Descriptors that are of this process alone: a forked child that kept a connection open would make the process look
// alive to the other end after its death, for as long as the child lives.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <utility>

#include "base/fd.hpp"

namespace base {

/// From now on a forked child gets a dead descriptor of this number, until its end. For owners other than PrivateFd.
void keep_private(int fd) noexcept;

/// Lives while its thread closes a descriptor, private or not. No child gets the descriptor, also if it is forked
/// meanwhile. Forks do not wait for the close of a socket: that may take as long as the sender of an unread message
/// likes. They wait for the close of other descriptors, which this process has opened itself.
class Closing {
 public:
  explicit Closing(int fd) noexcept;
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;
  ~Closing();

  // For the fork handler.
  [[nodiscard]] const Closing* next() const { return next_; }
  /// The number still has the socket: no other thread has got it for another one.
  [[nodiscard]] bool has_socket() const noexcept;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  std::unique_lock<std::mutex> no_fork_;  // of other descriptors
  const int fd_;
  ino_t inode_ = 0;          // each socket has its own
  Closing* next_ = nullptr;  // in the list of those that close sockets
};

/// A UniqueFd of which a forked child gets a dead descriptor under the same number. Numbers of 2^20 and more are not
/// replaced. Used by one thread at a time; all may fork.
class PrivateFd {
 public:
  explicit PrivateFd(int fd = -1) noexcept : fd_(fd) { keep_private(fd); }
  explicit PrivateFd(UniqueFd fd) noexcept : PrivateFd(fd.release()) {}
  PrivateFd(const PrivateFd&) = delete;
  PrivateFd& operator=(const PrivateFd&) = delete;
  PrivateFd(PrivateFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  PrivateFd& operator=(PrivateFd&& other) noexcept {
    reset();
    fd_ = std::exchange(other.fd_, -1);
    return *this;
  }
  ~PrivateFd() { reset(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  void reset() noexcept;

 private:
  int fd_;
};

/// The descriptors that another library waits for on an epoll descriptor of its own, as long as the object lives: in a
/// forked child they are replaced like those of PrivateFd. With those on epoll descriptors among them, and so on.
class PrivateEpoll {
 public:
  PrivateEpoll() = default;
  explicit PrivateEpoll(int epoll) noexcept;
  PrivateEpoll(const PrivateEpoll&) = delete;
  PrivateEpoll& operator=(const PrivateEpoll&) = delete;
  PrivateEpoll(PrivateEpoll&& other) noexcept : epoll_(std::exchange(other.epoll_, -1)) {}
  PrivateEpoll& operator=(PrivateEpoll&& other) noexcept {
    std::swap(epoll_, other.epoll_);
    return *this;
  }
  ~PrivateEpoll();

  /// Programs that this process starts from now on do not have them either. For libraries that open descriptors without
  /// O_CLOEXEC.
  void close_on_exec() const noexcept;

 private:
  int epoll_ = -1;
};

}  // namespace base
