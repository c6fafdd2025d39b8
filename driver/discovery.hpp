// SPDX-License-Identifier: Apache-2.0
// Which device is meant, and how it is reached.
#pragma once

#include <memory>
#include <string>

#include "driver/backend.hpp"
#include "driver/result.hpp"

namespace gba {

/// A device that somebody named. It need not answer.
struct Location {
  std::string shown;   // for people: "vfio-user:/run/gba.sock"
  std::string socket;  // of the vfio-user server; with a leading '@' an abstract name
  std::string key;     // equal for all names of one device
};

/// Looks what `path` is; null or empty means $GBA_DEVICE, or else /dev/gba0. Errors: those of gba_open.
Result<Location> find_device(const char* path);

Result<std::unique_ptr<Backend>> open_backend(const Location& location);

}  // namespace gba
