// SPDX-License-Identifier: Apache-2.0
// How the device's process says inside itself that something went wrong: base/result.hpp under its own name.
#pragma once

#include "base/result.hpp"

namespace fake_device {

using base::Error;
using base::Result;

/// For messages that no caller tells apart by their code.
inline Error failure(std::string text, int error = 0) {
  return error == 0 ? Error{std::errc{}, std::move(text)} : base::fail_errno(error, std::move(text));
}

}  // namespace fake_device
