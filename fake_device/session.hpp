// SPDX-License-Identifier: Apache-2.0
// One connection: a client that speaks vfio-user, and the port that it gets for it.
#pragma once

#include <memory>
#include <string>

#include "fake_device/commands.hpp"
#include "fake_device/function.hpp"
#include "fake_device/log.hpp"
#include "fake_device/outbox.hpp"
#include "fake_device/port_pool.hpp"
#include "fake_device/posted_writes.hpp"

namespace fake_device {

/// What sessions share, and where one says that it wants to be looked at outside of its own socket's turn.
class SessionHost {
 public:
  SessionHost() = default;
  SessionHost(const SessionHost&) = delete;
  SessionHost& operator=(const SessionHost&) = delete;

  virtual Engine& engine() = 0;
  virtual const Log& log() = 0;
  virtual EventSignaller& signaller() = 0;
  virtual void wants_attention(int socket) = 0;

 protected:
  ~SessionHost() = default;
};

/// Used by one thread. The port is the session's from VERSION to the end of the object.
class Session final : public FunctionClient {
 public:
  /// `host` and `ports` must outlive the session. `deadline`: when VERSION must have come.
  Session(UniqueFd socket, SessionHost& host, PortPool& ports, Time deadline);
  ~Session();

  [[nodiscard]] int socket() const { return socket_.get(); }
  [[nodiscard]] Time deadline() const { return function_ ? kNever : deadline_; }

  /// The socket has something: takes a bounded number of messages, so that others get their turn.
  void on_readable(Time now);
  /// Sends what waits.
  void on_writable();
  /// The client is gone, and what it sent cannot be read now.
  void on_hangup() { end(""); }
  void on_kick(Time now);
  void on_shutdown();

  [[nodiscard]] bool ended() const { return ended_ || (closing_ && outbox_.empty()); }
  /// A client that does not read its replies gets no further requests handled.
  [[nodiscard]] bool wants_read() const { return !closing_ && !outbox_.full(); }
  [[nodiscard]] bool wants_write() const { return !outbox_.empty(); }
  /// -1 until the client has asked for it.
  [[nodiscard]] int kick_fd() const { return kick_fd_; }

  // ---- FunctionClient
  void send_store(unsigned group, std::uint64_t iova, std::uint64_t word) override;
  bool hold_interrupt(unsigned vector) override { return stores_.hold(vector); }
  void doom() override;
  void note(const std::string& text) override { log(LogLevel::kInfo, text); }

 private:
  bool receive();
  void handle(Message& message, Time now);
  void handle_command(Message& message, Time now);
  void handle_reply(const Message& message);
  Reply negotiate(const Message& message);
  Reply open_port(const ClientLimits& limits);
  void answer(const vfio_user_header& request, const Reply& reply);
  void end(const std::string& why);
  void log(LogLevel level, const std::string& text) const;

  UniqueFd socket_;
  SessionHost& host_;
  PortPool& ports_;
  const Time deadline_;
  MessageReader reader_;
  Outbox outbox_;
  PostedWrites stores_;
  ClientLimits limits_;
  std::unique_ptr<Function> function_;  // once VERSION has succeeded
  int kick_fd_ = -1;
  bool closing_ = false;  // after the last reply
  bool ended_ = false;
};

}  // namespace fake_device
