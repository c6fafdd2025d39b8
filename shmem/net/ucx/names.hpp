// SPDX-License-Identifier: Apache-2.0
// UCX's workers (wire/ucx) under this library's name.
#pragma once

#include "wire/ucx/worker.hpp"

namespace shmem {

using wire::bytes_of;
using wire::check_ucx_threads;
using wire::is_whole;
using wire::load_ucx;
using wire::receive_by;
using wire::ucx_failure;
using wire::ucx_version;
using wire::UcxCalls;
using wire::UcxWorker;

}  // namespace shmem
