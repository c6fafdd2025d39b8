// SPDX-License-Identifier: Apache-2.0
// Lets other calls give work to a stream.
#pragma once

#include "shmem/api/entry.hpp"
#include "shmem/cores/stream.hpp"

namespace shmem::api {

/// Adds work that uses the library; nullptr: the library's own stream. Ends the job, naming `call`, if that stream
/// cannot be started.
void give_to_stream(const char* call, shmemx_stream_t* stream, Stream::Work work);

/// Waits for the work of all streams of the program, which uses the library. An error of it stays for their next
/// synchronisation.
void await_streams();

}  // namespace shmem::api
