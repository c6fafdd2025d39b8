// SPDX-License-Identifier: Apache-2.0
// The control connection between the two sides of a test with two ports: JSON objects, one per line, over a socket. The
// sides may be two hosts. Nothing that arrives is trusted. Not wire's frames: those need libsodium, and the sides prove
// nothing to each other.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/fd.hpp"
#include "driver/tool/device.hpp"

namespace tool {

using Milliseconds = std::chrono::milliseconds;

class Link {
 public:
  explicit Link(base::UniqueFd socket) : socket_(std::move(socket)) {}

  /// Two that are connected to each other.
  static Result<std::pair<Link, Link>> make_pair();

  Result<void> send(const Json& message);
  /// An object. If the other side reports an error ({"error": TEXT}), that is the failure. `limit` 0: no limit.
  Result<Json> receive(Milliseconds limit);

 private:
  Result<std::string> receive_line(Milliseconds limit);

  base::UniqueFd socket_;
  std::string received_;  // after the last line
};

/// All failures of a Link have this form and code.
Failure peer_failure(int error, const std::string& text);

/// {"error": TEXT, "code": ERRNO} for the other side.
Json error_message(const Failure& failure);

/// The number `name` of a message that the other side has sent, or a failure if it has none from `least` to `most`.
Result<std::uint64_t> number_in(const Json& message, const char* name, std::uint64_t least, std::uint64_t most);
/// The text `name`, without what a terminal would not print; "" if there is none.
std::string text_in(const Json& message, const char* name);

Json to_json(const gba_group_handle& handle);
/// The "handle" in a message.
Result<gba_group_handle> handle_in(const Json& message);

/// Tells each other what runs here. Fails if it is not the same command with the same protocol. Gives what the other
/// side said: "version", "host".
Result<Json> greet(Link& link, const std::string& command, Milliseconds limit);

}  // namespace tool
