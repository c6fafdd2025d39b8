// SPDX-License-Identifier: Apache-2.0
// Copies from and to memory that a PE of this node has registered and that is private to its process: by the kernel,
// one system call for each.
#pragma once

#include "shmem/api/peer.hpp"
#include "shmem/memory/process_memory.hpp"

namespace shmem::api {

/// Why the kernel has not copied registered memory of `pe`, a PE of this node by its number there.
Error copy_failure(const Job& job, int pe, std::errc error);

// `blocks`: `here` of this PE. End the job if the kernel refuses. REQUIRES: Peer::at_if_mapped has found nothing.
[[gnu::cold]] void put_copied(const Peer& peer, const void* dest, const void* source, const CopyBlocks& blocks);
[[gnu::cold]] void get_copied(const Peer& peer, void* dest, const void* source, const CopyBlocks& blocks);

}  // namespace shmem::api
