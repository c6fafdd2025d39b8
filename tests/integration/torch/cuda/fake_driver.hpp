// SPDX-License-Identifier: Apache-2.0
// What tests ask of the fake driver, besides the functions of CUDA's.
#pragma once

#include <cstddef>

extern "C" {
/// Memory of a device: an access by the host is a SIGSEGV.
void* fake_cuda_allocate(int device, std::size_t bytes);
void fake_cuda_free(void* address);
/// Where a test reads and writes what the device has at this address.
void* fake_cuda_view(void* address);

/// What the driver has seen in this process so far.
struct fake_cuda_counts {
  long pinned_copies;    // of host memory that is registered
  long pageable_copies;  // of other
  long bytes_to_host;
  long bytes_to_device;
  long registered;  // ranges of host memory, now
  long wrong;       // calls that a real driver refuses, or that are wrong without its saying so
};
void fake_cuda_count(fake_cuda_counts* counts);
/// The next calls of this name fail with this status, so many times.
void fake_cuda_fail(const char* call, int status, int times);
}
