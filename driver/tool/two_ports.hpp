// SPDX-License-Identifier: Apache-2.0
// Tests with two ports, of this machine or of two: where the other side is, and the process that is the other side
// here.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "driver/tool/link.hpp"

namespace tool {

/// Options of selftest and bench.
struct TwoPorts {
  std::string peer;     // the device of the second port; empty: none was named
  std::string listen;   // address; empty: all addresses and the default port
  std::string connect;  // address
  bool listens = false;
  double timeout = 60;  // seconds

  [[nodiscard]] bool connects() const { return !connect.empty(); }
  [[nodiscard]] Milliseconds limit() const { return Milliseconds{static_cast<std::int64_t>(timeout * 1e3)}; }
};

/// Adds --peer, --listen, --connect and --timeout, of which `ports` is told.
void take_two_ports(Command& command, TwoPorts& ports);

/// The connection to the other host, as --listen or --connect says.
Result<Link> meet(const TwoPorts& ports);

/// A second process of this program, which serves a Link until it ends, or until the object ends it.
class PeerProcess {
 public:
  /// REQUIRES: this process has opened no device yet, since a child cannot use its parent's.
  static Result<std::unique_ptr<PeerProcess>> start(const std::function<void(Link&)>& serve);
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;
  ~PeerProcess();

  Link& link() { return link_; }

 private:
  PeerProcess(pid_t pid, Link link) : pid_(pid), link_(std::move(link)) {}

  const pid_t pid_;
  Link link_;
};

}  // namespace tool
