// SPDX-License-Identifier: Apache-2.0
// The vfio-user commands that a function answers: payloads taken apart, checked, and put together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fake_device/function.hpp"
#include "fake_device/message.hpp"

namespace fake_device {

/// What the client said of itself in VERSION.
struct ClientLimits {
  std::uint64_t max_fds = 1;
  std::uint64_t max_transfer = kMaxTransfer;
  bool write_multiple = false;
};

struct Reply {
  int error = 0;  // errno: the reply is a header only
  std::vector<std::byte> payload;
  std::vector<int> fds;  // borrowed from the function
};

/// Any command but VERSION. Never throws for what the client sent; unknown commands are refused.
Reply run_command(Function& function, const ClientLimits& limits, Message& message, Time now);

}  // namespace fake_device
