// SPDX-License-Identifier: Apache-2.0
// How libshmem says inside itself that something went wrong: base/result.hpp under this library's name.
#pragma once

#include "base/result.hpp"

namespace shmem {

using base::Error;
using base::fail;
using base::fail_errno;
using base::invalid;
using base::Result;

}  // namespace shmem
