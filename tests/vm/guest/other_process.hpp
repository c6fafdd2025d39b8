// SPDX-License-Identifier: Apache-2.0
// Another process of the guest.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "base/fd.hpp"
#include "gba/gba.h"

namespace guest {

/// Both ends of a conversation, one of which is in a child. Everything throws std::exception with the reason.
class Channel {
 public:
  explicit Channel(base::UniqueFd socket) : socket_(std::move(socket)) {}

  void send(const gba_group_handle& handle) const;
  /// What the other end has sent; throws what made it fail, if it did.
  [[nodiscard]] gba_group_handle receive() const;
  /// No handle, only a sign that something is done.
  void signal() const { send({}); }
  void await() const { (void)receive(); }
  /// The other end's receive() throws `why`.
  void fail(const std::string& why) const;

 private:
  base::UniqueFd socket_;
};

/// Forked from this process, and gone with the object. What its body throws is thrown by receive() and finish().
class OtherProcess {
 public:
  explicit OtherProcess(const std::function<void(const Channel&)>& body);
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;
  ~OtherProcess();

  [[nodiscard]] const Channel& channel() const { return channel_; }
  /// Waits for its end.
  void finish() const { channel_.await(); }

 private:
  Channel channel_;
  pid_t pid_ = -1;
};

}  // namespace guest
