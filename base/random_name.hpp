// SPDX-License-Identifier: Apache-2.0
// Names that cannot be guessed and are used only once.
#pragma once

#include <array>

#include "base/result.hpp"

namespace base {

/// 128 random bits in hexadecimal, without a final zero.
using RandomName = std::array<char, 32>;

Result<RandomName> random_name();

}  // namespace base
