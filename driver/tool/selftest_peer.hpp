// SPDX-License-Identifier: Apache-2.0
// The selftest's second member: a process of its own, on a port of its own.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/fd.hpp"
#include "driver/tool/device.hpp"

namespace tool {

/// What the second process has to say; plain data.
struct PeerReport {
  int error = 0;  // -errno
  std::uint32_t port = 0;
  std::array<char, 512> text{};
};

/// Forked before this process opens anything, since a child cannot use its parent's device; ended with the object.
class Peer {
 public:
  /// It waits until it is told what to join. Empty if there can be no second process.
  static std::unique_ptr<Peer> start(const std::string& path);

  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer();

  /// Lets it open the device, join as member 1 and do `barriers` barriers, and then `called` ones at each of which it
  /// arrives when it is called; it stays a member until the object goes or leave(). Waits until it has joined.
  PeerReport join(const gba_group_handle& handle, std::uint64_t barriers, std::uint64_t called);
  void call();
  /// Waits until it has done its barriers; it leaves the group then.
  PeerReport leave();

 private:
  Peer(pid_t pid, base::UniqueFd orders, base::UniqueFd reports);
  PeerReport next_report();

  pid_t pid_;
  base::UniqueFd orders_;
  base::UniqueFd reports_;
};

}  // namespace tool
