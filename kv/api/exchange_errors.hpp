// SPDX-License-Identifier: Apache-2.0
// How the calls of shmemx_exchange.h report errors.
#pragma once

#include <new>
#include <string>

#include "shmem/api/entry.hpp"

namespace shmem::api {

inline int refuse_exchange(const char* call, const std::string& problem) {
  return report(fail(std::errc::invalid_argument, fmt::format("shmem: {}: {}", call, problem)));
}

/// SHMEM_CATCH alone ends the process, unless the program has errors returned.
inline int exchange_out_of_memory() noexcept {
  try {
    return report(fail(std::errc::not_enough_memory, "shmem: an exchange is out of memory"));
  } catch (const std::bad_alloc&) {
    return report({std::errc::not_enough_memory, "out of memory"});  // short enough that a string allocates nothing
  }
}

}  // namespace shmem::api

/// After the body of a call, a function-try-block.
#define SHMEM_EXCHANGE_CATCH                       \
  catch (const std::bad_alloc&) {                  \
    return ::shmem::api::exchange_out_of_memory(); \
  }                                                \
  SHMEM_CATCH(int)
