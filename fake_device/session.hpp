// SPDX-License-Identifier: Apache-2.0
// One connection: a client that speaks vfio-user, and the port that it gets for it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fake_device/commands.hpp"
#include "fake_device/function.hpp"
#include "fake_device/log.hpp"
#include "fake_device/message.hpp"
#include "fake_device/server_parts.hpp"

namespace fake_device {

/// What sessions share, and how one asks for attention outside of its own socket's turn.
class SessionHost {
 public:
  SessionHost() = default;
  SessionHost(const SessionHost&) = delete;
  SessionHost& operator=(const SessionHost&) = delete;

  virtual Engine& engine() = 0;
  virtual const Log& log() = 0;
  virtual InterruptQueue& interrupts() = 0;
  virtual Closer& closer() = 0;
  virtual DmaPool& dma_pool() = 0;
  [[nodiscard]] virtual Time now() const = 0;
  virtual void wants_attention(int socket) = 0;

 protected:
  ~SessionHost() = default;
};

/// Used by one thread. The port is the session's from VERSION to the end of the object.
class Session final : public FunctionClient {
 public:
  /// `host` and `ports` must outlive the session. `deadline`: when VERSION must have come.
  Session(Given socket, std::shared_ptr<FdAccount> account, SessionHost& host, PortPool& ports, Time deadline);
  ~Session();

  [[nodiscard]] int socket() const { return socket_.get(); }
  /// VERSION has succeeded.
  [[nodiscard]] bool opened() const { return function_ != nullptr; }
  /// When on_deadline() is due; kNever.
  [[nodiscard]] Time deadline() const;

  /// The socket has something, or a message is under way: does a bounded part of it, so that others get their turn.
  void on_readable(Time now);
  /// A message is under way: on_readable() is to be called again, whatever the socket has.
  [[nodiscard]] bool under_way() const { return message_ && !ended_; }
  /// Sends what waits.
  void on_writable();
  /// The client is gone, and what it sent cannot be read now.
  void on_hangup() { end(""); }
  void on_kick(Time now);
  /// The client has not finished in time what it began.
  void on_deadline();
  /// What was done for it threw: the device has no memory left for it.
  void on_exception(const std::exception& error) noexcept;
  void on_shutdown();

  [[nodiscard]] bool ended() const { return ended_ || (closing_ && send_queue_.empty()); }
  /// A client that does not read its replies gets no further requests handled, nor does one that sends descriptors too
  /// fast, until resumes().
  [[nodiscard]] bool wants_read() const {
    return !closing_ && !send_queue_.full() && allowance_.resumes() <= host_.now();
  }
  [[nodiscard]] Time resumes() const { return allowance_.resumes(); }
  [[nodiscard]] bool wants_write() const { return !send_queue_.empty(); }
  /// -1 until the client has asked for it.
  [[nodiscard]] int kick_fd() const { return kick_fd_; }

  // ---- FunctionClient
  void send_store(unsigned group, std::uint64_t iova, std::uint64_t word) override;
  bool hold_interrupt(unsigned vector) override { return stores_.hold(vector); }
  void doom() override;
  void note(const std::string& text) override { log(LogLevel::kInfo, text); }
  void warn(const std::string& text) override { log(LogLevel::kWarning, text); }

 private:
  void post_store(unsigned group, std::uint64_t iova, std::uint64_t word);
  [[nodiscard]] const char* no_more_fds() const;
  [[nodiscard]] bool waits_for_closer();
  bool receive(Turn& turn);
  bool handle(VfioUserMessage& message, Time now, Turn& turn);
  bool handle_command(VfioUserMessage& message, Time now, Turn& turn);
  void handle_reply(const VfioUserMessage& message, Turn& turn);
  Reply negotiate(const VfioUserMessage& message);
  Reply open_port(const ClientLimits& limits);
  void answer(const vfio_user_header& request, const Reply& reply);
  void log_refusal(std::uint16_t command, int error);
  void end(std::string_view why);
  void log(LogLevel level, std::string_view text, std::string_view more = {}) const;

  Given socket_;
  const std::shared_ptr<FdAccount> account_;
  SessionHost& host_;
  PortPool& ports_;
  const Time deadline_;
  MessageReader reader_;
  FdAllowance allowance_;
  Time unfinished_since_ = kNever;
  Time unclosed_since_ = kNever;            // too many of its descriptors wait to be closed
  std::optional<VfioUserMessage> message_;  // under way
  std::uint64_t done_ = 0;                  // register writes of it
  SendQueue send_queue_;
  PostedWrites stores_;
  ClientLimits limits_;
  std::unique_ptr<Function> function_;  // once VERSION has succeeded
  int kick_fd_ = -1;
  bool by_message_ = false;  // it has been logged
  unsigned refusals_ = 0;    // that were logged
  bool closing_ = false;     // after the last reply
  bool ended_ = false;
};

}  // namespace fake_device
