// SPDX-License-Identifier: Apache-2.0
#include "python/shmem_torch/arguments.hpp"

#include <algorithm>
#include <numeric>

namespace shmem_torch {

int operation_of(const char* name, const c10d::ReduceOp& operation) {
  switch (static_cast<c10d::ReduceOp::RedOpType>(operation)) {
    case c10d::ReduceOp::SUM:
      return SHMEMX_GROUP_SUM;
    case c10d::ReduceOp::AVG:
      return SHMEMX_GROUP_AVERAGE;
    case c10d::ReduceOp::PRODUCT:
      return SHMEMX_GROUP_PRODUCT;
    case c10d::ReduceOp::MIN:
      return SHMEMX_GROUP_MIN;
    case c10d::ReduceOp::MAX:
      return SHMEMX_GROUP_MAX;
    case c10d::ReduceOp::BAND:
      return SHMEMX_GROUP_AND;
    case c10d::ReduceOp::BOR:
      return SHMEMX_GROUP_OR;
    case c10d::ReduceOp::BXOR:
      return SHMEMX_GROUP_XOR;
    default:
      refuse(name, "this operation is not available with the backend shmem");
  }
}

std::size_t bytes_of(const char* name, const std::vector<std::int64_t>& sizes, at::ScalarType type) {
  constexpr std::int64_t kMost = std::int64_t{1} << 56;  // elements: bytes of them can be counted
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    if (size < 0 || (size != 0 && count > kMost / size)) {
      refuse(name, "a shape cannot have a dimension of " + std::to_string(size));
    }
    count *= size;
  }
  return static_cast<std::size_t>(count) * c10::elementSize(type);
}

void check_type(const char* name, const at::Tensor& one, const at::Tensor& other) {
  if (one.scalar_type() != other.scalar_type()) {
    refuse(name, "the tensors of the lists differ in dtype: " + dtype_name(other.scalar_type()) + " and " +
                     dtype_name(one.scalar_type()));
  }
}

void check_list(const char* name, const Tensors& list, int size, const at::Tensor& like) {
  if (static_cast<int>(list.size()) != size) {
    refuse(name, "got a list of " + std::to_string(list.size()) + " tensors for " + std::to_string(size) + " ranks");
  }
  for (const at::Tensor& one : list) {
    if (one.numel() != like.numel() || one.scalar_type() != like.scalar_type()) {
      refuse(name, "the tensors of the list and the other tensor differ in size or dtype");
    }
  }
}

Few<std::uint64_t> parts_of(const char* name, const at::Tensor& tensor, const std::vector<std::int64_t>& splits,
                            int size) {
  const std::int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  Few<std::uint64_t> parts(static_cast<std::size_t>(size));
  if (splits.empty() && rows % size != 0) {
    refuse(name, "the first dimension is " + std::to_string(rows) + ", not a multiple of the " + std::to_string(size) +
                     " ranks");
  }
  const auto is_size = [rows](std::int64_t split) { return split >= 0 && split <= rows; };
  if (!splits.empty() &&
      (static_cast<int>(splits.size()) != size || !std::all_of(splits.begin(), splits.end(), is_size) ||
       std::accumulate(splits.begin(), splits.end(), std::int64_t{0}) != rows)) {
    refuse(name, "the split sizes do not add up to the first dimension, are negative, or are not one for each rank");
  }
  const std::uint64_t row_bytes = rows == 0 ? 0 : bytes_of(tensor) / static_cast<std::uint64_t>(rows);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] = static_cast<std::uint64_t>(splits.empty() ? rows / size : splits[i]) * row_bytes;
  }
  return parts;
}

}  // namespace shmem_torch
