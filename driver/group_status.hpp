// SPDX-License-Identifier: Apache-2.0
// A group as its registers show it to everybody.
#pragma once

#include <cstdint>

#include "driver/device.hpp"
#include "gba/gba.h"

namespace gba {

/// Errors: those of gba_group_get_status.
Result<gba_group_status> read_group_status(Device& device, std::uint32_t group);

}  // namespace gba
