// SPDX-License-Identifier: Apache-2.0
// Tensors as the buffers of a call: kept alive until it is over, and contiguous. Compiled slowly, like all that
// includes torch.
#pragma once

#include <ATen/ATen.h>
#include <c10/util/SmallVector.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "python/shmem_torch/device_tensors.hpp"
#include "python/shmem_torch/group_calls.hpp"

namespace shmem_torch {

using Tensors = std::vector<at::Tensor>;

/// Throws std::invalid_argument about the call of this name.
[[noreturn]] void refuse(const char* name, const std::string& problem);

std::size_t bytes_of(const at::Tensor& tensor);

/// Some of these need no memory of their own: small calls allocate nothing.
template <typename T>
using Few = c10::SmallVector<T, 4>;

/// One call with the tensors that it reads and writes.
class TensorCall {
 public:
  /// `timeout` < 0: that of the group.
  TensorCall(const char* name, int kind, std::chrono::milliseconds timeout) : name_(name), timeout_(timeout) {
    call.kind = kind;
    call.type = SHMEMX_GROUP_BYTES;
  }
  [[nodiscard]] std::chrono::milliseconds timeout() const { return timeout_; }
  /// Before it is made: once its timeout is known.
  void limit(std::chrono::milliseconds timeout) {
    timeout_ = timeout;
    call.timeout_ns = nanoseconds(timeout);
  }

  /// Reads a tensor, or a copy of one that is not contiguous.
  void read(const at::Tensor& tensor);
  /// Writes a tensor, or a buffer that is copied to one that is not contiguous.
  void write(const at::Tensor& tensor);
  /// Both, for calls in place.
  void update(const at::Tensor& tensor);
  /// Tensors one after the other, as bytes, in one buffer of their own: as one buffer of the call.
  void read_all(const std::vector<at::Tensor>& tensors);
  void write_all(const std::vector<at::Tensor>& tensors);
  void update_all(const std::vector<at::Tensor>& tensors);

  /// Each rank's tensors have these shapes and dtypes, and the same number of bytes if it is one tensor.
  void expect(at::TensorList tensors);
  /// Each rank's tensors have this dtype.
  void expect_type_of(const at::Tensor& tensor);
  /// Throws unless these elements can be combined so.
  void combine(at::TensorList tensors, int operation);
  /// This rank cannot make its call, for that reason.
  void say(std::string reason) { reason_ = std::move(reason); }

  /// With the buffers below, to which the contents of tensors of devices are copied; if they cannot be, the call is one
  /// that fails on all ranks.
  [[nodiscard]] const shmemx_group_call_t& to_make();
  [[nodiscard]] std::uint32_t signature() const { return signature_; }
  /// Once it is made, with this error: the results are in the tensors. "", or why it failed.
  std::string finish(const GroupHandle& group, int error);

  shmemx_group_call_t call{};
  Few<const void*> from{};
  Few<void*> to{};
  Few<std::uint64_t> from_bytes{};
  Few<std::uint64_t> to_bytes{};

 private:
  void sign(std::int64_t value);
  void write_to_all(const std::vector<at::Tensor>& tensors, void* buffer);
  void* buffer_for(const std::vector<at::Tensor>& tensors);
  DeviceTensors& devices();
  void* place_of(const at::Tensor& flat, int use);

  [[nodiscard]] std::string description() const;

  const char* name_;  // for messages
  std::chrono::milliseconds timeout_;
  std::uint32_t signature_ = 0;
  Few<at::Tensor> like_{};  // of these messages speak
  std::string reason_{};    // or of this
  Few<at::Tensor> kept_{};
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_{};      // afterwards: to the first from the second
  std::vector<std::pair<at::Tensor, const void*>> scattered_{};  // likewise, from bytes
  std::unique_ptr<DeviceTensors> devices_{};                     // those of devices, if there are any
};

/// Throws std::invalid_argument unless it is a dense tensor of the CPU or of a CUDA device that can be used.
void check_tensor(const char* name, const at::Tensor& tensor);
/// Throws std::invalid_argument unless it is one in the memory of this process.
void check_host_tensor(const char* name, const at::Tensor& tensor);
/// Throws unless the list has one tensor, as calls of processes have, and checks it.
const at::Tensor& only_tensor(const char* name, const std::vector<at::Tensor>& tensors);

int type_of(const at::Tensor& tensor);
/// The type of a message of such elements, and back.
std::uint32_t message_type_of(at::ScalarType dtype);
at::ScalarType dtype_of_message(std::uint32_t type);
/// "float32"
std::string dtype_name(at::ScalarType dtype);

/// Complex numbers as pairs.
at::Tensor as_real(const at::Tensor& tensor);

}  // namespace shmem_torch
