// SPDX-License-Identifier: Apache-2.0
// The selftest's second member, on a port of its own: a process of this machine or of another.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "driver/tool/target.hpp"
#include "driver/tool/two_ports.hpp"

namespace tool {

/// What the second member has to say.
struct PeerReport {
  int error = 0;  // -errno
  std::uint32_t port = 0;
  std::string text = {};
};

/// The first member's view of the second. Each call waits for at most the limit.
class SelftestPeer {
 public:
  /// On the host that --connect names; or on a process of this machine, with the port that --peer names, or with
  /// another port of a vfio-user server. Null: there is no second port. REQUIRES: this process has opened no device
  /// yet.
  static Result<std::unique_ptr<SelftestPeer>> find(const TwoPorts& ports, const Target& target);

  /// Waits until it has joined as member 1. In the last `called` of its `barriers` + `called` barriers it arrives only
  /// when it is called.
  PeerReport join(const gba_group_handle& handle, std::uint64_t barriers, std::uint64_t called);
  void call();
  /// Waits for the end of its barriers, then lets it leave.
  PeerReport leave();
  /// Tells it what the test has found. Last.
  void conclude(std::size_t problems);

 private:
  Link& link() { return process_ ? process_->link() : *link_; }
  PeerReport next_report();

  SelftestPeer(Link link, Milliseconds limit) : link_(std::move(link)), limit_(limit) {}
  SelftestPeer(std::unique_ptr<PeerProcess> process, Milliseconds limit)
      : process_(std::move(process)), limit_(limit) {}
  static Result<std::unique_ptr<SelftestPeer>> start(const std::string& path, Milliseconds limit);

  std::unique_ptr<PeerProcess> process_;  // null: on another host
  std::optional<Link> link_;
  const Milliseconds limit_;
};

/// gba selftest --listen: the second member's whole life. Returns the exit code.
int be_second_member(const Invocation& invocation, const TwoPorts& ports);

}  // namespace tool
