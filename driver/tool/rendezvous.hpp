// SPDX-License-Identifier: Apache-2.0
// How two hosts find each other: one listens, the other connects.
#pragma once

#include <string>

#include "driver/tool/link.hpp"

namespace tool {

constexpr const char* kDefaultPort = "18710";

struct Address {
  std::string host;  // "": all addresses of this machine
  std::string port = kDefaultPort;
};

/// HOST, HOST:PORT, [IPV6]:PORT, :PORT or PORT. Nothing: all addresses, and the default port. `option` is for the
/// message.
Result<Address> parse_address(const std::string& text, const std::string& option);

/// Accepts one connection. The address is printed to standard error before, with the port if it was 0.
Result<Link> accept_one(const Address& address, Milliseconds limit);
Result<Link> connect_to(const Address& address, Milliseconds limit);

}  // namespace tool
