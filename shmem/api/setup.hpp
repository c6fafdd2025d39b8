// SPDX-License-Identifier: Apache-2.0
// What routines of two names do: the library itself calls neither.
#pragma once

#include "shmem/api/entry.hpp"

namespace shmem::api {

/// Starts the library by what the environment says; ends the process with a message if that cannot be.
void start(int thread_level = SHMEM_THREAD_SINGLE);
/// -1 before the start.
inline int my_pe() {
  return Context::current() != nullptr ? Context::current()->my_pe() : -1;
}
inline int n_pes() {
  return Context::current() != nullptr ? Context::current()->n_pes() : -1;
}

}  // namespace shmem::api
