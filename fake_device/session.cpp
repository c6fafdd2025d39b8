// SPDX-License-Identifier: Apache-2.0
#include "fake_device/session.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <system_error>

#include "fake_device/negotiation.hpp"
#include "fake_device/socket_io.hpp"

namespace fake_device {
namespace {

constexpr unsigned kMessagesPerTurn = 32;
constexpr std::size_t kMaxPostedWrites = 4096;

std::string peer_of(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return "nobody known";
  }
  return "process " + std::to_string(peer.pid) + " of user " + std::to_string(peer.uid);
}

}  // namespace

Session::Session(UniqueFd socket, SessionHost& host, PortPool& ports, Time deadline)
    : socket_(std::move(socket)), host_(host), ports_(ports), deadline_(deadline) {}

Session::~Session() {
  if (function_) {
    const unsigned port = function_->port();
    function_.reset();
    ports_.give_back(port);
    host_.log().write(LogLevel::kInfo, "closed", static_cast<int>(port));
  }
}

void Session::on_readable(Time now) {
  for (unsigned taken = 0; taken < kMessagesPerTurn && !ended_ && wants_read();) {
    if (!receive()) {
      return;
    }
    if (auto message = reader_.take()) {
      ++taken;
      handle(*message, now);
    }
  }
}

// False: nothing more to be had.
bool Session::receive() {
  Received received = receive_some(socket_.get(), reader_.room());
  if (received.count < 0 && (received.error == EAGAIN || received.error == EWOULDBLOCK)) {
    return false;
  }
  if (received.count < 0) {
    end("its socket failed: " + std::generic_category().message(received.error));
  } else if (received.count == 0) {
    end("");
  } else if (received.fds_lost) {
    end("it sent more file descriptors than the " + std::to_string(kMaxFds) +
        " that a message may have, or our limit on open files (ulimit -n) is reached");
  } else if (!reader_.commit(static_cast<std::size_t>(received.count), std::move(received.fds))) {
    end("it sent a message of an impossible size");
  }
  return !ended_;
}

void Session::handle(Message& message, Time now) {
  if (message.is_reply()) {
    handle_reply(message);
  } else {
    handle_command(message, now);
  }
}

void Session::handle_command(Message& message, Time now) {
  Reply reply;
  if (!message.is_command() || message.fds.size() > kMaxFds) {
    reply.error = EINVAL;
  } else if (message.header.command == VFIO_USER_VERSION) {
    reply = negotiate(message);
  } else if (!function_) {
    reply.error = EINVAL;
    closing_ = true;
  } else {
    reply = run_command(*function_, limits_, message, now);
    kick_fd_ = reply.error == 0 && message.header.command == VFIO_USER_DEVICE_GET_REGION_IO_FDS && !reply.fds.empty()
                   ? reply.fds.front()
                   : kick_fd_;
  }
  if (reply.error != 0) {
    log(LogLevel::kDebug, "refused command " + std::to_string(message.header.command) + ": " +
                              std::generic_category().message(reply.error));
  }
  if (message.wants_reply()) {
    answer(message.header, reply);
  }
}

Reply Session::negotiate(const Message& message) {
  if (function_) {
    return {.error = EINVAL, .payload = {}, .fds = {}};
  }
  const auto limits =
      message.fds.empty() ? parse_version(message.payload) : failure("its VERSION message brought file descriptors");
  if (!limits) {
    log(LogLevel::kWarning, "refused: " + limits.error());
    closing_ = true;
    return {.error = EINVAL, .payload = {}, .fds = {}};
  }
  Reply reply = open_port(*limits);
  closing_ = reply.error != 0;
  return reply;
}

Reply Session::open_port(const ClientLimits& limits) {
  const auto port = ports_.take();
  if (!port) {
    log(LogLevel::kWarning, "refused: all " + std::to_string(ports_.size()) + " ports are taken");
    return {.error = EBUSY, .payload = {}, .fds = {}};
  }
  auto function = Function::open(host_.engine(), *port, *this, host_.signaller());
  if (!function) {
    log(LogLevel::kError, function.error());
    ports_.give_back(*port);
    return {.error = ENOMEM, .payload = {}, .fds = {}};
  }
  limits_ = limits;
  function_ = *std::move(function);
  log(LogLevel::kInfo, "opened by " + peer_of(socket_.get()));
  return {.error = 0, .payload = version_reply(limits), .fds = {}};
}

void Session::answer(const vfio_user_header& request, const Reply& reply) {
  vfio_user_header header{};
  header.msg_id = request.msg_id;
  header.command = request.command;
  header.flags = VFIO_USER_TYPE_REPLY;
  if (reply.error != 0) {
    header.flags |= VFIO_USER_ERROR;
    header.error = static_cast<std::uint32_t>(reply.error);
    outbox_.push(header, {}, {});
  } else {
    outbox_.push(header, reply.payload, reply.fds);
  }
  on_writable();
}

void Session::on_writable() {
  if (!outbox_.flush(socket_.get())) {
    end("");
  }
}

void Session::on_kick(Time now) {
  if (function_) {
    function_->kicked(now);
  }
}

void Session::on_shutdown() {
  if (function_) {
    function_->warn_of_removal();
  }
}

void Session::send_store(unsigned group, std::uint64_t iova, std::uint64_t word) {
  if (stores_.outstanding() >= kMaxPostedWrites || outbox_.full()) {
    doom();  // it has stopped reading
    return;
  }
  vfio_user_header header{};
  header.msg_id = stores_.sent({.group = group, .iova = iova});
  header.command = VFIO_USER_DMA_WRITE;
  header.flags = VFIO_USER_TYPE_COMMAND;
  struct {
    vfio_user_dma_access access;
    std::uint64_t word;
  } const payload{.access = {.address = iova, .count = sizeof word}, .word = word};
  outbox_.push(header, std::as_bytes(std::span(&payload, 1)), {});
  on_writable();
  host_.wants_attention(socket_.get());
}

void Session::handle_reply(const Message& message) {
  const bool success = (message.header.flags & VFIO_USER_ERROR) == 0;
  const auto completion = message.header.command == VFIO_USER_DMA_WRITE && message.fds.empty() && function_
                              ? stores_.completed(message.header.msg_id, success)
                              : std::nullopt;
  if (!completion) {
    end("it answered what it was not asked");
    return;
  }
  for (const unsigned vector : completion->interrupts) {
    function_->fire(vector);
  }
  if (completion->failed) {
    host_.engine().flag_store_failed(function_->port(), completion->failed->group, completion->failed->iova);
  }
}

void Session::doom() {
  if (!ended_) {
    end("it took back memory that it had given, or stopped reading");
    host_.wants_attention(socket_.get());
  }
}

void Session::end(const std::string& why) {
  if (!ended_ && !why.empty()) {
    log(LogLevel::kWarning, "dropped: " + why);
  }
  ended_ = true;
}

void Session::log(LogLevel level, const std::string& text) const {
  if (function_) {
    host_.log().write(level, text, static_cast<int>(function_->port()));
  } else {
    host_.log().write(level, "a new client: " + text);
  }
}

}  // namespace fake_device
