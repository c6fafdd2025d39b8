// SPDX-License-Identifier: Apache-2.0
// base/result.hpp under this library's name.
#pragma once

#include <fmt/format.h>

#include "base/result.hpp"

namespace gba {

using base::errno_text;
using base::Error;
using base::fail;
using base::Result;

/// `text` and what errno says, e.g. fail_errno(errno, "gba: cannot open /dev/gba0").
inline Error fail_errno(int error, const std::string& text) {
  return fail(std::errc{error}, fmt::format("{}: {}", text, errno_text(error)));
}

}  // namespace gba
