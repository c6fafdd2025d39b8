// SPDX-License-Identifier: Apache-2.0
// What gba check finds; gba report includes it.
#pragma once

#include "driver/tool/output.hpp"
#include "driver/tool/target.hpp"

namespace tool {

/// Can the device be opened, and if not, what fixes it?
Findings check_device(const Target& target);

}  // namespace tool
