// SPDX-License-Identifier: Apache-2.0
// torch.distributed._symmetric_memory for CPU tensors: PyTorch has the interface, and implementations for GPUs only.
#pragma once

namespace shmem_torch {

/// From now on torch allocates symmetric memory of CPU tensors here. False: this version of PyTorch has no such
/// interface, or another one.
bool register_symmetric_memory();

}  // namespace shmem_torch
