// SPDX-License-Identifier: Apache-2.0
#include "python/shmem_torch/tensors.hpp"

#include <cstring>
#include <stdexcept>
#include <string>

namespace shmem_torch {
namespace {

/// "float [2, 3]"
std::string text_of(const at::Tensor& tensor) {
  std::string text = c10::toString(tensor.scalar_type());
  const char* separator = " [";
  for (const std::int64_t extent : tensor.sizes()) {
    text += separator + std::to_string(extent);
    separator = ", ";
  }
  return text + (tensor.dim() == 0 ? " []" : "]");
}

}  // namespace

void refuse(const char* name, const std::string& problem) {
  throw std::invalid_argument(std::string(name) + ": " + problem);
}

std::size_t bytes_of(const at::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel()) * static_cast<std::size_t>(tensor.element_size());
}

void check_tensor(const char* name, const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != at::kStrided) {
    refuse(name, "a tensor is not dense");
  }
  if (!tensor.device().is_cpu()) {
    refuse(name, "a tensor is on " + tensor.device().str() + "; the backend shmem is for tensors of the CPU");
  }
}

const at::Tensor& only_tensor(const char* name, const std::vector<at::Tensor>& tensors) {
  if (tensors.size() != 1) {
    refuse(name, "got " + std::to_string(tensors.size()) + " tensors, not one");
  }
  check_tensor(name, tensors.front());
  return tensors.front();
}

int type_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kBool:
      return SHMEMX_GROUP_BOOL;
    case at::kByte:
      return SHMEMX_GROUP_UINT8;
    case at::kChar:
      return SHMEMX_GROUP_INT8;
    case at::kShort:
      return SHMEMX_GROUP_INT16;
    case at::kInt:
      return SHMEMX_GROUP_INT32;
    case at::kLong:
      return SHMEMX_GROUP_INT64;
    case at::kHalf:
      return SHMEMX_GROUP_FLOAT16;
    case at::kBFloat16:
      return SHMEMX_GROUP_BFLOAT16;
    case at::kFloat:
      return SHMEMX_GROUP_FLOAT32;
    case at::kDouble:
      return SHMEMX_GROUP_FLOAT64;
    default:
      return SHMEMX_GROUP_BYTES;
  }
}

std::uint32_t message_type_of(at::ScalarType dtype) {
  return static_cast<std::uint32_t>(dtype) + 1;  // 0: none is given
}

at::ScalarType dtype_of_message(std::uint32_t type) {
  return static_cast<at::ScalarType>(type - 1);
}

std::string dtype_name(at::ScalarType dtype) {
  switch (dtype) {
    case at::kByte:
      return "uint8";
    case at::kChar:
      return "int8";
    case at::kShort:
      return "int16";
    case at::kInt:
      return "int32";
    case at::kLong:
      return "int64";
    case at::kHalf:
      return "float16";
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kComplexHalf:
      return "complex32";
    case at::kComplexFloat:
      return "complex64";
    case at::kComplexDouble:
      return "complex128";
    case at::kBool:
      return "bool";
    case at::kBFloat16:
      return "bfloat16";
    default:
      return c10::toString(dtype);
  }
}

at::Tensor as_real(const at::Tensor& tensor) {
  return tensor.is_complex() ? at::view_as_real(tensor.detach()) : tensor;
}

void TensorCall::read(const at::Tensor& tensor) {
  check_tensor(name_, tensor);
  kept_.push_back(tensor.is_contiguous() ? tensor : tensor.detach().contiguous());
  from.push_back(kept_.back().data_ptr());
}

void TensorCall::write(const at::Tensor& tensor) {
  check_tensor(name_, tensor);
  if (tensor.is_contiguous()) {
    kept_.push_back(tensor);
  } else {
    kept_.push_back(at::empty(tensor.sizes(), tensor.options().requires_grad(false)));
    copies_.emplace_back(tensor.detach(), kept_.back());
  }
  to.push_back(kept_.back().data_ptr());
}

void TensorCall::update(const at::Tensor& tensor) {
  check_tensor(name_, tensor);
  if (tensor.is_contiguous()) {
    kept_.push_back(tensor);
  } else {
    kept_.push_back(tensor.detach().contiguous());
    copies_.emplace_back(tensor.detach(), kept_.back());
  }
  from.push_back(kept_.back().data_ptr());
  to.push_back(kept_.back().data_ptr());
}

at::Tensor TensorCall::buffer_for(const std::vector<at::Tensor>& tensors) {
  std::size_t bytes = 0;
  for (const at::Tensor& tensor : tensors) {
    check_tensor(name_, tensor);
    bytes += bytes_of(tensor);
  }
  kept_.push_back(at::empty({static_cast<std::int64_t>(bytes)}, at::kByte));
  call.bytes = bytes;
  return kept_.back();
}

void TensorCall::read_all(const std::vector<at::Tensor>& tensors) {
  const at::Tensor buffer = buffer_for(tensors);
  auto* next = static_cast<char*>(buffer.data_ptr());
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor flat = tensor.detach().contiguous();
    if (const std::size_t bytes = bytes_of(flat); bytes != 0) {
      std::memcpy(next, flat.data_ptr(), bytes);
      next += bytes;
    }
  }
  from.push_back(buffer.data_ptr());
}

void TensorCall::write_all(const std::vector<at::Tensor>& tensors) {
  const at::Tensor buffer = buffer_for(tensors);
  scattered_.emplace_back(tensors, buffer);
  to.push_back(buffer.data_ptr());
}

void TensorCall::update_all(const std::vector<at::Tensor>& tensors) {
  read_all(tensors);
  scattered_.emplace_back(tensors, kept_.back());
  to.push_back(kept_.back().data_ptr());
}

/// FNV-1a, of 32 bits: the same in all processes.
void TensorCall::sign(std::int64_t value) {
  constexpr std::uint32_t kPrime = 16777619;
  for (int shift = 0; shift < 64; shift += 8) {
    signature_ = (signature_ ^ static_cast<std::uint8_t>(value >> shift)) * kPrime;
  }
}

void TensorCall::expect(at::TensorList tensors) {
  expect_type_of(tensors.front());
  call.bytes = bytes_of(tensors.front());
  like_.assign(tensors.begin(), tensors.end());
  for (const at::Tensor& tensor : tensors) {
    sign(static_cast<std::int64_t>(tensor.scalar_type()));
    sign(tensor.dim());
    for (const std::int64_t extent : tensor.sizes()) {
      sign(extent);
    }
  }
}

void TensorCall::expect_type_of(const at::Tensor& tensor) {
  call.type = type_of(tensor);
  like_.assign(1, tensor);
  sign(static_cast<std::int64_t>(tensor.scalar_type()));
}

void TensorCall::combine(at::TensorList tensors, int operation) {
  const at::Tensor& first = tensors.front();
  expect(tensors);
  call.operation = operation;
  call.type = type_of(as_real(first));
  const bool is_sum = operation == SHMEMX_GROUP_SUM || operation == SHMEMX_GROUP_AVERAGE;
  if (call.type == SHMEMX_GROUP_BYTES || (first.is_complex() && !is_sum)) {
    refuse(name_, std::string("elements of type ") + c10::toString(first.scalar_type()) + " cannot be combined" +
                      (first.is_complex() ? ", except by sum and average" : ""));
  }
}

/// "Float [2, 3], Float [4]", or why there is no call.
std::string TensorCall::description() const {
  std::string text = reason_;
  for (const at::Tensor& tensor : like_) {
    text += (text.empty() ? "" : ", ") + text_of(tensor);
  }
  return text;
}

const shmemx_group_call_t& TensorCall::to_make() {
  call.from = from.data();
  call.to = to.data();
  call.from_bytes = from_bytes.data();
  call.to_bytes = to_bytes.data();
  return call;
}

std::string TensorCall::failure(const GroupHandle& group, int error) const {
  return failure_on_all(group, name_, error, timeout_, [this] { return description(); });
}

void TensorCall::copy_results() {
  for (auto& [result, copied] : copies_) {
    result.copy_(copied);
  }
  for (auto& [tensors, buffer] : scattered_) {
    std::int64_t at = 0;
    for (const at::Tensor& tensor : tensors) {
      const auto bytes = static_cast<std::int64_t>(bytes_of(tensor));
      if (bytes != 0) {
        at::Tensor flat = at::empty(tensor.sizes(), tensor.options().requires_grad(false));
        std::memcpy(flat.data_ptr(), static_cast<const char*>(buffer.data_ptr()) + at, static_cast<std::size_t>(bytes));
        tensor.detach().copy_(flat);
      }
      at += bytes;
    }
  }
}

}  // namespace shmem_torch
