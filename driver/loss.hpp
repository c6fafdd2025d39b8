// SPDX-License-Identifier: Apache-2.0
// The ways in which a device can be lost. Each has an errno and a text of its own (gba.h).
#pragma once

#include <cstdint>
#include <string>
#include <system_error>

#include "driver/result.hpp"

namespace gba {

enum class Loss : std::uint8_t {
  kNone,
  kRemoved,   // it reads all ones
  kUnmapped,  // an access to its memory was answered with SIGBUS
  kPciError,  // VFIO's ERR
  kWanted,    // VFIO's REQ
  kClosed,    // the connection to its process has ended
  kSilent,    // it does not answer
  kGarbled,   // what it answers is not the protocol
  kForked,    // it is another process's, of which this one is a forked child
};

/// The errno that gba.h has for it. REQUIRES: not kNone.
std::errc code_of(Loss loss);
/// What happened, for people.
const char* text_of(Loss loss);
/// The failure of every call on a lost device.
Error loss_error(Loss loss, const std::string& path);

}  // namespace gba
