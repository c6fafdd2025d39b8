// SPDX-License-Identifier: Apache-2.0
// What gba info prints; gba report includes it.
#pragma once

#include <string>

#include "driver/tool/look.hpp"

namespace tool {

/// A table of the properties and counters of a device.
std::string facts_text(const Looker& looker, const Look& look);

}  // namespace tool
