// SPDX-License-Identifier: Apache-2.0
// How the process around the model reports what went wrong.
#pragma once

#include <string>
#include <system_error>
#include <tl/expected.hpp>

namespace fake_device {

/// A text for a person: what was tried, on what, what came back, what to do.
template <typename T>
using Result = tl::expected<T, std::string>;

inline tl::unexpected<std::string> failure(std::string text) {
  return tl::unexpected<std::string>(std::move(text));
}

/// "text: No such file or directory"
inline tl::unexpected<std::string> failure(const std::string& text, int error) {
  return failure(text + ": " + std::generic_category().message(error));
}

}  // namespace fake_device
