// SPDX-License-Identifier: Apache-2.0
// How libshmem says inside itself that something went wrong. The C ABI turns an Error into what OpenSHMEM says.
#pragma once

#include <string>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>

namespace shmem {

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

/// `text` and what errno says, e.g. fail_errno(errno, "shmem: cannot map the heap").
inline tl::unexpected<Error> fail_errno(int error, std::string text) {
  return fail(std::errc{error}, std::move(text) + ": " + std::generic_category().message(error));
}

}  // namespace shmem
