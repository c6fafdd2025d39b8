// SPDX-License-Identifier: Apache-2.0
// How libgba says inside itself that something went wrong. c_api.cpp turns an Error into -errno.
#pragma once

#include <string>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>

namespace gba {

/// `text` is whole: what was tried, on what, what came back, what the user can do.
struct Error {
  std::errc code{};
  std::string text;
};

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(std::errc code, std::string text) {
  return tl::make_unexpected(Error{code, std::move(text)});
}

/// What errno says, as the end of a sentence: "connection refused".
inline std::string errno_text(int error) {
  std::string text = std::generic_category().message(error);
  if (text.size() > 1 && text[1] >= 'a' && text[0] >= 'A' && text[0] <= 'Z') {
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  }
  return text;
}

/// `text` and what errno says, e.g. fail_errno(errno, "gba: cannot map the flags").
inline tl::unexpected<Error> fail_errno(int error, std::string text) {
  return fail(std::errc{error}, std::move(text) + ": " + errno_text(error));
}

}  // namespace gba
