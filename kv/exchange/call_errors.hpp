// SPDX-License-Identifier: Apache-2.0
// What the calls of shmemx_exchange.h share: how they report errors, since none ends the process, and second names.
#pragma once

#include <fmt/format.h>

#include <new>
#include <string>

#include "shmem/config/error_text.hpp"
#include "shmemx_exchange.h"

namespace shmem::exchange {

/// Keeps the text for shmemx_error_text and returns the negative errno.
inline int report(const Error& error) {
  return keep_error(error);
}

inline int refuse(const char* call, const std::string& problem) {
  return report(fail(std::errc::invalid_argument, fmt::format("shmem: {}: {}", call, problem)));
}

inline int out_of_memory() noexcept {
  try {
    return report(fail(std::errc::not_enough_memory, "shmem: an exchange is out of memory"));
  } catch (const std::bad_alloc&) {
    return report({std::errc::not_enough_memory, "out of memory"});  // short enough that a string allocates nothing
  }
}

}  // namespace shmem::exchange

/// After the body of a call, a function-try-block.
#define SHMEM_EXCHANGE_CATCH                   \
  catch (const std::bad_alloc&) {              \
    return ::shmem::exchange::out_of_memory(); \
  }

/// After the call: its name for libshmem, whose shmemx_exchange_NAME calls it (kv/api/exchange.cpp).
#define SHMEM_EXCHANGE_SECOND_NAME(name)                                  \
  extern "C" SHMEM_API decltype(shmemx_exchange_##name) kvexchange_##name \
      __attribute__((alias("shmemx_exchange_" #name)));
