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
  if (tensor.is_cpu()) {
    return;
  }
  const std::string device = "a tensor is on " + tensor.device().str();
  if (!tensor.is_cuda()) {
    refuse(name, device + "; the backend shmem is for tensors of the CPU and of CUDA devices");
  }
  if (!cuda_problem().empty()) {
    refuse(name, device + ", and CUDA's driver cannot be used: " + cuda_problem());
  }
}

void check_host_tensor(const char* name, const at::Tensor& tensor) {
  check_tensor(name, tensor);
  if (!tensor.is_cpu()) {
    refuse(name, "a tensor is on " + tensor.device().str() + "; this call is for tensors of the CPU");
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

DeviceTensors& TensorCall::devices() {
  if (!devices_) {
    devices_ = std::make_unique<DeviceTensors>();
  }
  return *devices_;
}

void* TensorCall::place_of(const at::Tensor& flat, int use) {
  return flat.is_cpu() ? flat.data_ptr() : devices().add(flat, use);
}

void TensorCall::read(const at::Tensor& tensor) {
  check_tensor(name_, tensor);
  kept_.push_back(tensor.is_contiguous() ? tensor : tensor.detach().contiguous());
  from.push_back(place_of(kept_.back(), DeviceTensors::kRead));
}

void TensorCall::write(const at::Tensor& tensor) {
  check_tensor(name_, tensor);
  if (tensor.is_contiguous()) {
    kept_.push_back(tensor);
  } else {
    kept_.push_back(at::empty(tensor.sizes(), tensor.options().requires_grad(false)));
    copies_.emplace_back(tensor.detach(), kept_.back());
  }
  to.push_back(place_of(kept_.back(), DeviceTensors::kWritten));
}

void TensorCall::update(const at::Tensor& tensor) {
  check_tensor(name_, tensor);
  if (tensor.is_contiguous()) {
    kept_.push_back(tensor);
  } else {
    kept_.push_back(tensor.detach().contiguous());
    copies_.emplace_back(tensor.detach(), kept_.back());
  }
  void* const place = place_of(kept_.back(), DeviceTensors::kRead | DeviceTensors::kWritten);
  from.push_back(place);
  to.push_back(place);
}

void* TensorCall::buffer_for(const std::vector<at::Tensor>& tensors) {
  std::size_t bytes = 0;
  const at::Tensor* of_device = nullptr;
  for (const at::Tensor& tensor : tensors) {
    check_tensor(name_, tensor);
    bytes += bytes_of(tensor);
    of_device = tensor.is_cpu() ? of_device : &tensor;
  }
  call.bytes = bytes;
  if (of_device != nullptr) {
    return devices().buffer(bytes, *of_device);
  }
  kept_.push_back(at::empty({static_cast<std::int64_t>(bytes)}, at::kByte));
  return kept_.back().data_ptr();
}

void TensorCall::read_all(const std::vector<at::Tensor>& tensors) {
  void* const buffer = buffer_for(tensors);
  auto* next = static_cast<char*>(buffer);
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor flat = tensor.detach().contiguous();
    const std::size_t bytes = bytes_of(flat);
    if (!flat.is_cpu()) {
      devices().add_at(next, flat, DeviceTensors::kRead);
    } else if (bytes != 0) {
      std::memcpy(next, flat.data_ptr(), bytes);
    }
    next += bytes;
  }
  from.push_back(buffer);
}

void TensorCall::write_to_all(const std::vector<at::Tensor>& tensors, void* buffer) {
  auto* next = static_cast<char*>(buffer);
  for (const at::Tensor& tensor : tensors) {
    if (tensor.is_cpu()) {
      scattered_.emplace_back(tensor.detach(), next);
    } else if (tensor.is_contiguous()) {
      devices().add_at(next, tensor, DeviceTensors::kWritten);
    } else {
      copies_.emplace_back(tensor.detach(), at::empty(tensor.sizes(), tensor.options().requires_grad(false)));
      devices().add_at(next, copies_.back().second, DeviceTensors::kWritten);
    }
    next += bytes_of(tensor);
  }
  to.push_back(buffer);
}

void TensorCall::write_all(const std::vector<at::Tensor>& tensors) {
  write_to_all(tensors, buffer_for(tensors));
}

void TensorCall::update_all(const std::vector<at::Tensor>& tensors) {
  read_all(tensors);
  write_to_all(tensors, const_cast<void*>(from.back()));
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
  if (devices_) {
    try {
      devices_->fetch(timeout_);
    } catch (const std::exception& error) {
      call.kind = kNoCall;
      say(std::string("a tensor cannot be copied from its device: ") + error.what());
    }
  }
  call.from = from.data();
  call.to = to.data();
  call.from_bytes = from_bytes.data();
  call.to_bytes = to_bytes.data();
  return call;
}

std::string TensorCall::finish(const GroupHandle& group, int error) {
  if (error != 0) {
    return failure_on_all(group, name_, error, timeout_, [this] { return description(); });
  }
  if (devices_) {
    devices_->store();
  }
  for (auto& [result, copied] : copies_) {
    result.copy_(copied);
    if (!result.is_cpu()) {
      finish_current_stream(result);  // which the program's need not be
    }
  }
  for (auto& [tensor, bytes] : scattered_) {
    if (tensor.numel() != 0) {
      at::Tensor flat = at::empty(tensor.sizes(), tensor.options().requires_grad(false));
      std::memcpy(flat.data_ptr(), bytes, bytes_of(flat));
      tensor.copy_(flat);
    }
  }
  return "";
}

}  // namespace shmem_torch
