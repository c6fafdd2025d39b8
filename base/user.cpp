// SPDX-License-Identifier: Apache-2.0
#include "base/user.hpp"

#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace base {
namespace {

/// The kernel's default if it cannot be read, as without /proc.
uid_t unknown_user() {
  std::ifstream file("/proc/sys/kernel/overflowuid");
  uid_t number = 0;
  return file >> number ? number : 65534;
}

/// As on a machine without user namespaces.
bool knows_all_users() {
  std::ifstream file("/proc/self/uid_map");
  std::uint64_t first = 1;
  std::uint64_t outside = 1;
  std::uint64_t count = 0;
  return file >> first >> outside >> count && first == 0 && outside == 0 && count == UINT32_MAX;
}

}  // namespace

std::optional<ucred> peer_of(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? std::optional(peer) : std::nullopt;
}

bool is_user_unknown() {
  return ::geteuid() == unknown_user() && !knows_all_users();
}

bool is_this_user(uid_t other) {
  return other == ::geteuid() && !is_user_unknown();
}

bool is_peer_this_user(int socket) {
  const auto peer = peer_of(socket);
  return peer && is_this_user(peer->uid);
}

}  // namespace base
