// SPDX-License-Identifier: Apache-2.0
// Bytes with file descriptors over a Unix socket, without waiting.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <vector>

#include "fake_device/unique_fd.hpp"

namespace fake_device {

/// Bytes sent, or -1 with errno. `fds` go with the first of them.
ssize_t send_some(int socket, std::span<const std::byte> bytes, std::span<const int> fds);

struct Received {
  ssize_t count = -1;         // 0: the client has closed; -1: see error
  int error = 0;              // EAGAIN: nothing there
  std::vector<UniqueFd> fds;  // that came with the bytes
  bool fds_lost = false;      // more came than are accepted
};
Received receive_some(int socket, std::span<std::byte> room);

}  // namespace fake_device
