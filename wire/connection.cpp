// SPDX-License-Identifier: Apache-2.0
#include "wire/connection.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <span>
#include <string>
#include <system_error>

namespace wire {

bool Connection::send(const FrameBytes& frame) {
  const bool is_idle = out_.empty();
  keep(frame);
  if (seals_) {
    keep(encode(seals_->next(*frame)));
  }
  return !is_idle || write();
}

bool Connection::write() {
  while (!out_.empty()) {
    const auto rest = std::span(*out_.front()).subspan(sent_);
    const ssize_t sent =
        base::retry([&] { return ::send(fd(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT); });
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return true;
    }
    if (sent < 0) {
      out_.clear();
      sent_ = 0;
      unsent_ = 0;
      return false;
    }
    sent_ += static_cast<std::size_t>(sent);
    unsent_ -= static_cast<std::size_t>(sent);
    if (sent_ == out_.front()->size()) {
      out_.pop_front();
      sent_ = 0;
    }
  }
  return true;
}

base::Result<void> Connection::read(bool keeps) {
  std::array<std::byte, 64 << 10> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): written before it is read
  const ssize_t got = base::retry([&] { return ::recv(fd(), buffer.data(), buffer.size(), MSG_DONTWAIT); });
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    return {};
  }
  if (got < 0) {
    return base::fail_errno(errno, "its connection is broken");
  }
  if (got == 0) {
    return base::fail(std::errc::connection_reset, "it closed its connection (has it died?)");
  }
  if (keeps) {
    reader_.push(std::span(buffer).first(static_cast<std::size_t>(got)));
  }
  return {};
}

}  // namespace wire
