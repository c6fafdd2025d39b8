// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/link.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

namespace tool {
namespace {

/// Of the messages between two sides. It changes with them.
constexpr std::uint64_t kProtocol = 1;
constexpr std::size_t kLongestLine = std::size_t{1} << 16;

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string printable(std::string text) {
  constexpr std::size_t kMost = 500;
  text.resize(std::min(text.size(), kMost));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

}  // namespace

Failure peer_failure(int error, const std::string& text) {
  return {error, "gba: the other side: " + text, kPeerFailed};
}

Json error_message(const Failure& failure) {
  return {{"error", failure.text}, {"code", -failure.error}};
}

Result<std::pair<Link, Link>> Link::make_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, static_cast<int*>(ends)) != 0) {
    return Failure{-errno, fmt::format("gba: cannot make a pair of sockets: {}", std::strerror(errno)), kOther};
  }
  return std::pair(Link(base::UniqueFd(ends[0])), Link(base::UniqueFd(ends[1])));
}

Result<void> Link::send(const Json& message) {
  std::string line = message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t more = ::send(socket_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (more < 0 && errno != EINTR) {
      return peer_failure(-EPIPE, fmt::format("the connection is lost: {}", std::strerror(errno)));
    }
    sent += more > 0 ? static_cast<std::size_t>(more) : 0;
  }
  return {};
}

Result<std::string> Link::receive_line(Milliseconds limit) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + limit;
  for (;;) {
    if (const auto end = received_.find('\n'); end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    if (received_.size() > kLongestLine) {
      return peer_failure(-EPROTO, "a message is too long; is it gba?");
    }
    const auto left = std::chrono::duration_cast<Milliseconds>(deadline - Clock::now()) + Milliseconds{1};
    pollfd event{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    const int ready =
        ::poll(&event, 1, limit.count() == 0 ? -1 : static_cast<int>(std::max(left, Milliseconds{0}).count()));
    if (ready == 0) {
      return peer_failure(-ETIMEDOUT, fmt::format("no answer for {} s", static_cast<double>(limit.count()) / 1e3));
    }
    std::array<char, 4096> text{};
    const ssize_t got = ready < 0 ? -1 : ::recv(socket_.get(), text.data(), text.size(), 0);
    if (got == 0) {
      return peer_failure(-EPIPE, "it has closed the connection");
    }
    if (got < 0 && errno != EINTR) {
      return peer_failure(-EPIPE, fmt::format("the connection is lost: {}", std::strerror(errno)));
    }
    received_.append(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  }
}

Result<Json> Link::receive(Milliseconds limit) {
  const auto line = receive_line(limit);
  if (!line) {
    return line.error();
  }
  auto message = Json::parse(*line, nullptr, /*allow_exceptions=*/false);
  if (!message.is_object()) {
    return peer_failure(-EPROTO, fmt::format("it is not gba: it sent \"{}\"", printable(line->substr(0, 80))));
  }
  if (message.contains("error")) {
    const auto code = number_in(message, "code", 1, 4095);
    const std::string text = text_in(message, "error");
    return peer_failure(code ? -static_cast<int>(*code) : -EPROTO, text.starts_with("gba: ") ? text.substr(5) : text);
  }
  return message;
}

Result<std::uint64_t> number_in(const Json& message, const char* name, std::uint64_t least, std::uint64_t most) {
  const auto found = message.find(name);
  if (found != message.end() && found->is_number_unsigned()) {
    const auto value = found->get<std::uint64_t>();
    if (value >= least && value <= most) {
      return value;
    }
  }
  return peer_failure(-EPROTO, fmt::format("a message without a valid \"{}\"", name));
}

std::string text_in(const Json& message, const char* name) {
  const auto found = message.find(name);
  return found != message.end() && found->is_string() ? printable(found->get<std::string>()) : "";
}

Json to_json(const gba_group_handle& handle) {
  return {{"group", handle.group},
          {"key", handle.key},
          {"member_count", handle.member_count},
          {"sequence", handle.sequence}};
}

Result<gba_group_handle> handle_in(const Json& message) {
  const auto found = message.find("handle");
  if (found == message.end() || !found->is_object()) {
    return peer_failure(-EPROTO, "a message without a group");
  }
  gba_group_handle handle{};
  const auto group = number_in(*found, "group", 0, UINT32_MAX);
  const auto key = number_in(*found, "key", 0, UINT32_MAX);
  const auto members = number_in(*found, "member_count", 2, 2);
  const auto sequence = number_in(*found, "sequence", 0, UINT64_MAX);
  for (const auto* part : {&group, &key, &members, &sequence}) {
    if (!*part) {
      return part->error();
    }
  }
  handle.group = static_cast<std::uint32_t>(*group);
  handle.key = static_cast<std::uint32_t>(*key);
  handle.member_count = static_cast<std::uint32_t>(*members);
  handle.sequence = *sequence;
  return handle;
}

Result<Json> greet(Link& link, const std::string& command, Milliseconds limit) {
  const auto sent =
      link.send({{"gba", command}, {"protocol", kProtocol}, {"version", gba_version()}, {"host", host_name()}});
  if (!sent) {
    return sent.error();
  }
  auto answer = link.receive(limit);
  if (!answer) {
    return answer;
  }
  const auto protocol = number_in(*answer, "protocol", 0, UINT64_MAX);
  if (!protocol || *protocol != kProtocol) {
    return peer_failure(-EPROTO,
                        fmt::format("its protocol is {}, of libgba {}; here it is {}, of libgba {}: use the same "
                                    "version on both sides",
                                    protocol ? fmt::format("{}", *protocol) : "unknown", text_in(*answer, "version"),
                                    kProtocol, gba_version()));
  }
  if (text_in(*answer, "gba") != command) {
    return peer_failure(-EPROTO, fmt::format("it runs gba {}, not gba {}: use the same command on both sides",
                                             text_in(*answer, "gba"), command));
  }
  return answer;
}

}  // namespace tool
