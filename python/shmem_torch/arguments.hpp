// SPDX-License-Identifier: Apache-2.0
// Checks of what a program gives to a call. `name` is that of the call, for the text of the exception.
#pragma once

#include <torch/csrc/distributed/c10d/Types.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "python/shmem_torch/tensors.hpp"

namespace shmem_torch {

/// The shmemx_group_operation for an operation of torch. Throws if the library has no such operation.
int operation_of(const char* name, const c10d::ReduceOp& operation);

/// The bytes that a tensor of this shape needs. Throws if there can be no such tensor.
std::size_t bytes_of(const char* name, const std::vector<std::int64_t>& sizes, at::ScalarType type);

/// Throws unless both have one dtype.
void check_type(const char* name, const at::Tensor& one, const at::Tensor& other);
/// Throws unless there is a tensor like `like` for each rank.
void check_list(const char* name, const Tensors& list, int size, const at::Tensor& like);
/// The bytes of each rank's part along the first dimension; equal parts if no sizes are given.
Few<std::uint64_t> parts_of(const char* name, const at::Tensor& tensor, const std::vector<std::int64_t>& splits,
                            int size);

}  // namespace shmem_torch
