// SPDX-License-Identifier: Apache-2.0
// The calls of UCX. libshmem does not link it: it is loaded by jobs on several nodes.
#pragma once

#include <ucp/api/ucp.h>

#include <string>

#include "base/result.hpp"

namespace wire {

using base::Error;
using base::fail;
using base::Result;

// What libshmem calls: of libucp, and of libucs, which libucp loads.
#define SHMEM_UCX_CALLS(CALL)           \
  CALL(ucp, get_version)                \
  CALL(ucp, config_read)                \
  CALL(ucp, config_modify)              \
  CALL(ucp, config_release)             \
  CALL(ucp, init_version)               \
  CALL(ucp, cleanup)                    \
  CALL(ucp, context_print_info)         \
  CALL(ucp, worker_create)              \
  CALL(ucp, worker_destroy)             \
  CALL(ucp, worker_query)               \
  CALL(ucp, worker_release_address)     \
  CALL(ucp, worker_get_efd)             \
  CALL(ucp, worker_arm)                 \
  CALL(ucp, worker_signal)              \
  CALL(ucp, worker_progress)            \
  CALL(ucp, worker_flush_nbx)           \
  CALL(ucp, ep_create)                  \
  CALL(ucp, ep_close_nbx)               \
  CALL(ucp, ep_flush_nbx)               \
  CALL(ucp, ep_rkey_unpack)             \
  CALL(ucp, rkey_pack)                  \
  CALL(ucp, rkey_buffer_release)        \
  CALL(ucp, rkey_destroy)               \
  CALL(ucp, mem_map)                    \
  CALL(ucp, mem_unmap)                  \
  CALL(ucp, put_nbx)                    \
  CALL(ucp, get_nbx)                    \
  CALL(ucp, atomic_op_nbx)              \
  CALL(ucp, worker_set_am_recv_handler) \
  CALL(ucp, am_send_nbx)                \
  CALL(ucp, tag_send_nbx)               \
  CALL(ucp, tag_recv_nbx)               \
  CALL(ucp, tag_probe_nb)               \
  CALL(ucp, request_check_status)       \
  CALL(ucp, request_cancel)             \
  CALL(ucp, request_free)               \
  CALL(ucs, status_string)

struct UcxCalls {
#define SHMEM_UCX_MEMBER(library, name) decltype(&::library##_##name) name;
  SHMEM_UCX_CALLS(SHMEM_UCX_MEMBER)
#undef SHMEM_UCX_MEMBER
};

/// The calls of `library`, which stays loaded from then on because it has threads. UCX installs no signal handlers,
/// hooks no memory functions and prints nothing (our Errors do), unless the user's UCX_* variables ask for that.
Result<UcxCalls> load_ucx(const std::string& library);

/// "1.13.1"
std::string ucx_version(const UcxCalls& calls);

}  // namespace wire
