// SPDX-License-Identifier: Apache-2.0
// The text of the calling thread's last failed call, which shmemx_error_text returns.
#pragma once

#include "shmem/result.hpp"

namespace shmem {

/// Keeps the text, and returns the negative errno.
int keep_error(const Error& error);
/// "" before the first failed call. Valid until the thread's next failed call.
const char* kept_error_text();

}  // namespace shmem
