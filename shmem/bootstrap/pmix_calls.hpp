// SPDX-License-Identifier: Apache-2.0
// The calls of libpmix. libshmem does not link it: it is loaded where a PMIx launcher has started the process.
#pragma once

#include <pmix.h>

#include "shmem/result.hpp"

namespace shmem {

/// What libshmem calls of libpmix; a test brings its own.
struct PmixCalls {
  decltype(&::PMIx_Init) init;
  decltype(&::PMIx_Finalize) finalize;
  decltype(&::PMIx_Put) put;
  decltype(&::PMIx_Commit) commit;
  decltype(&::PMIx_Fence) fence;
  decltype(&::PMIx_Get) get;
  decltype(&::PMIx_Abort) abort;
  decltype(&::PMIx_Register_event_handler) register_event_handler;
  decltype(&::PMIx_Deregister_event_handler) deregister_event_handler;
  decltype(&::PMIx_Error_string) error_string;
};

/// Those of libpmix.so.2, which then stays loaded: it has threads.
Result<PmixCalls> load_pmix();

}  // namespace shmem
