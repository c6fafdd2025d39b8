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

/// One end of a connection between a parent and a child. Failures throw std::exception with the reason.
class Channel {
 public:
  explicit Channel(base::UniqueFd socket) : socket_(std::move(socket)) {}

  void send(const gba_group_handle& handle) const;
  /// Returns what the other end sent; throws its failure if it failed.
  [[nodiscard]] gba_group_handle receive() const;
  /// Sends no handle, only a signal.
  void signal() const { send({}); }
  void await() const { (void)receive(); }
  /// The other end's receive() throws `why`.
  void fail(const std::string& why) const;

 private:
  base::UniqueFd socket_;
};

/// A process forked from this one, which is killed with the object. receive() and finish() throw what its body throws.
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
