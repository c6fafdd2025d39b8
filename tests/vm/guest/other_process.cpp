// SPDX-License-Identifier: Apache-2.0
#include "tests/vm/guest/other_process.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "tests/vm/guest/require.hpp"

namespace guest {
namespace {

constexpr timeval kWaitLimit{.tv_sec = 40, .tv_usec = 0};

struct Message {
  gba_group_handle handle;
  std::array<char, 1024> failure;  // a text, or "" without a failure
};

std::pair<base::UniqueFd, base::UniqueFd> make_sockets() {
  std::array<int, 2> ends{};
  require_call(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), "socketpair");
  std::pair<base::UniqueFd, base::UniqueFd> sockets(ends[0], ends[1]);
  for (const int end : ends) {
    require_call(::setsockopt(end, SOL_SOCKET, SO_RCVTIMEO, &kWaitLimit, sizeof kWaitLimit), "SO_RCVTIMEO");
  }
  return sockets;
}

void send_message(int socket, const Message& message) {
  require_call(static_cast<int>(::send(socket, &message, sizeof message, MSG_NOSIGNAL)), "tell the other process");
}

/// Ends the process without running its parent's exit handlers.
[[noreturn]] void run_in_child(const std::function<void(const Channel&)>& body, const Channel& channel) {
  try {
    body(channel);
    channel.signal();
  } catch (const std::exception& error) {
    channel.fail(error.what());
  }
  ::_exit(0);
}

}  // namespace

void Channel::send(const gba_group_handle& handle) const {
  send_message(socket_.get(), {.handle = handle, .failure = {}});
}

void Channel::fail(const std::string& why) const {
  Message message{};
  std::copy_n(why.begin(), std::min(why.size(), message.failure.size() - 1), message.failure.begin());
  ::send(socket_.get(), &message, sizeof message, MSG_NOSIGNAL);
}

gba_group_handle Channel::receive() const {
  Message message{};
  const auto size = ::recv(socket_.get(), &message, sizeof message, 0);
  require_call(static_cast<int>(size), "hear from the other process");
  require(size == sizeof message, "the other process has ended without a message");
  require(message.failure[0] == '\0', std::string("the other process: ") + message.failure.data());
  return message.handle;
}

OtherProcess::OtherProcess(const std::function<void(const Channel&)>& body) : channel_(base::UniqueFd()) {
  auto [ours, theirs] = make_sockets();
  pid_ = require_call(::fork(), "fork");
  if (pid_ == 0) {
    ours = base::UniqueFd();
    run_in_child(body, Channel(std::move(theirs)));
  }
  channel_ = Channel(std::move(ours));
}

OtherProcess::~OtherProcess() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace guest
