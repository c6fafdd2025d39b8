// SPDX-License-Identifier: Apache-2.0
// What the C interfaces have in common: the thread's error text, and no exception that gets out.
#pragma once

#include <exception>
#include <new>
#include <string_view>
#include <system_error>

#include "driver/result.hpp"

namespace gba {

/// Sets the calling thread's error text. Returns -code.
int report(std::errc code, std::string_view text);
inline int report(const Error& error) {
  return report(error.code, error.text);
}
int null_argument(std::string_view function);
/// The result of a call without a value.
inline int finish(const Result<void>& result) {
  return result ? 0 : report(result.error());
}
/// Of the calling thread: gba_error_text().
const char* error_text();

/// Runs `body`, which gives 0 or -errno, and lets nothing out of it.
template <typename Body>
int guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return report(std::errc::not_enough_memory, "gba: out of memory");
  } catch (const std::exception& bug) {
    return report(std::errc::io_error, bug.what());
  }
}

}  // namespace gba
