// SPDX-License-Identifier: Apache-2.0
// The server's end of a vfio-user connection: a thread that plays a script, byte by byte if a test needs it.
#pragma once

#include <sys/socket.h>

#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.hpp"
#include "driver/vfio_user_channel.hpp"
#include "driver/wait.hpp"
#include "uapi/vfio_user.h"

namespace gba::test {

struct Received {
  vfio_user_header header{};
  std::vector<std::byte> payload;
  std::vector<base::UniqueFd> fds;

  template <typename T>
  [[nodiscard]] T get(std::size_t offset = 0) const {
    T value{};
    std::memcpy(&value, payload.data() + offset, sizeof(T));
    return value;
  }
};

/// The script's end of the connection. Used by the script's thread only.
class ServerEnd {
 public:
  explicit ServerEnd(int socket) : socket_(socket) {}

  Received receive() const {
    const Deadline deadline = Deadline::after(std::chrono::seconds{30});
    Received message;
    auto head = std::as_writable_bytes(std::span(&message.header, 1));
    if (!receive_bytes(socket_, head, message.fds, deadline)) {
      return {};
    }
    message.payload.resize(message.header.msg_size - sizeof(vfio_user_header));
    (void)receive_bytes(socket_, message.payload, message.fds, deadline);
    return message;
  }

  void send_raw(std::span<const std::byte> bytes, std::span<const int> fds = {}) const {
    (void)send_bytes(socket_, bytes, fds, Deadline::after(std::chrono::seconds{30}));
  }

  void send_message(const msghdr& message) const { (void)::sendmsg(socket_, &message, MSG_NOSIGNAL); }

  static std::vector<std::byte> message(vfio_user_header header, std::span<const std::byte> payload) {
    header.msg_size = static_cast<std::uint32_t>(sizeof(header) + payload.size());
    std::vector<std::byte> bytes(header.msg_size);
    std::memcpy(bytes.data(), &header, sizeof(header));
    std::copy(payload.begin(), payload.end(), bytes.begin() + sizeof(header));
    return bytes;
  }

  static vfio_user_header reply_header(const Received& request) {
    vfio_user_header header = request.header;
    header.flags = VFIO_USER_TYPE_REPLY;
    return header;
  }

  void reply(const Received& request, std::span<const std::byte> payload, std::span<const int> fds = {}) const {
    send_raw(message(reply_header(request), payload), fds);
  }

  void reply_error(const Received& request, std::uint32_t error, std::span<const std::byte> payload = {}) const {
    vfio_user_header header = reply_header(request);
    header.flags |= VFIO_USER_ERROR;
    header.error = error;
    send_raw(message(header, payload));
  }

 private:
  int socket_;
};

/// Plays `script` on the server's end of a socket pair; the connection ends with the script.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::function<void(const ServerEnd&)> script) {
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, static_cast<int*>(ends)) != 0) {
      std::abort();
    }
    client_ = base::UniqueFd(ends[0]);
    thread_ = std::thread(
        [script = std::move(script), server = base::UniqueFd(ends[1])] { script(ServerEnd(server.get())); });
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  ~ScriptedServer() { thread_.join(); }

  std::unique_ptr<VfioUserChannel> channel(std::chrono::nanoseconds timeout = VfioUserChannel::kReplyTimeout) {
    return std::make_unique<VfioUserChannel>(std::move(client_), "vfio-user:/x", timeout);
  }

 private:
  base::UniqueFd client_;
  std::thread thread_;
};

}  // namespace gba::test
