// SPDX-License-Identifier: Apache-2.0
// The VERSION message: what the client can do, and what this server can.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "fake_device/commands.hpp"
#include "fake_device/result.hpp"

namespace fake_device {

/// What the client's VERSION payload says; a text that names what is wrong with it.
Result<ClientLimits> parse_version(std::span<const std::byte> payload);

/// The payload of the answer; with the header at most VFIO_USER_MAX_VERSION_REPLY bytes.
std::vector<std::byte> version_reply(const ClientLimits& limits);

}  // namespace fake_device
