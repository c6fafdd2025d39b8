// SPDX-License-Identifier: Apache-2.0
// The Python module fake_cuda: tensors of the fake driver's devices for a PyTorch that has no CUDA, and streams, on
// which such a tensor is written as by a kernel.
#include <ATen/ATen.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/extension.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/integration/torch/cuda/fake_driver.hpp"

namespace {

constexpr int kDevices = 2;
constexpr auto kCuda = c10::DeviceType::CUDA;

/// What has been given to a stream last: true once it is over.
using Progress = std::shared_ptr<std::atomic<bool>>;
std::mutex mutex;
Progress last_of[kDevices] = {std::make_shared<std::atomic<bool>>(true), std::make_shared<std::atomic<bool>>(true)};
thread_local c10::DeviceIndex current_device = 0;
std::atomic<int> recorded{0};

struct Pending {
  at::Tensor to;
  at::Tensor from;
  Progress progress;
};
std::vector<Pending> pending;

struct FakeGuard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kCuda; }
  c10::Device exchangeDevice(c10::Device device) const override {
    return {kCuda, std::exchange(current_device, device.index())};
  }
  c10::Device getDevice() const override { return {kCuda, current_device}; }
  void setDevice(c10::Device device) const override { current_device = device.index(); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { current_device = device.index(); }
  c10::Stream getStream(c10::Device device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex /*device*/,
              const c10::EventFlag /*flag*/) const override {
    const std::scoped_lock lock(mutex);
    if (*event == nullptr) {
      *event = new Progress;
    }
    *static_cast<Progress*>(*event) = last_of[stream.device_index()];
    ++recorded;
  }
  void block(void* /*event*/, const c10::Stream& /*stream*/) const override {}
  bool queryEvent(void* event) const override { return **static_cast<Progress*>(event); }
  void destroyEvent(void* event, const c10::DeviceIndex /*device*/) const noexcept override {
    delete static_cast<Progress*>(event);
  }
};
C10_REGISTER_GUARD_IMPL(CUDA, FakeGuard);

/// What the device has, as a tensor of the CPU.
at::Tensor seen_by_host(const at::Tensor& tensor) {
  return tensor.is_cpu() || tensor.numel() == 0 ? tensor
                                                : at::from_blob(fake_cuda_view(tensor.data_ptr()), tensor.sizes(),
                                                                tensor.strides(), tensor.options().device(at::kCPU));
}

void write(const at::Tensor& to, const at::Tensor& from) {
  if (to.numel() != 0) {
    seen_by_host(to).copy_(seen_by_host(from));
  }
}

// ---- What PyTorch's own kernels of CUDA do ----

at::Tensor empty(at::IntArrayRef sizes, c10::optional<at::ScalarType> type, c10::optional<at::Layout> /*layout*/,
                 c10::optional<at::Device> where, c10::optional<bool> /*pinned*/,
                 c10::optional<at::MemoryFormat> /*format*/) {
  const c10::Device device(kCuda, where && where->has_index() ? where->index() : current_device);
  const auto options = at::TensorOptions().dtype(type.value_or(at::kFloat)).device(device);
  void* const address = fake_cuda_allocate(
      device.index(), static_cast<std::size_t>(c10::multiply_integers(sizes)) * options.dtype().itemsize());
  TORCH_CHECK(address != nullptr, "no memory");
  return at::for_blob(address, sizes).deleter(fake_cuda_free).target_device(device).options(options).make_tensor();
}

at::Tensor as_strided(const at::Tensor& self, at::IntArrayRef sizes, at::IntArrayRef strides,
                      c10::optional<std::int64_t> offset) {
  at::Tensor result = at::detail::make_tensor<at::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(self.storage()),
                                                              self.key_set(), self.dtype());
  result.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  result.unsafeGetTensorImpl()->set_storage_offset(offset.value_or(self.storage_offset()));
  return result;
}

at::Tensor& copy(at::Tensor& self, const at::Tensor& source, bool /*non_blocking*/) {
  write(self, source);
  return self;
}

TORCH_LIBRARY_IMPL(aten, CUDA, kernels) {
  kernels.impl("empty.memory_format", &empty);
  kernels.impl("as_strided", &as_strided);
  kernels.impl("copy_", &copy);
}

// ---- For tests ----

/// A tensor of the device with the contents of one of the CPU.
at::Tensor to_device(const at::Tensor& tensor, int index) {
  at::Tensor made =
      empty(tensor.sizes(), tensor.scalar_type(), {}, c10::Device(kCuda, static_cast<c10::DeviceIndex>(index)), {}, {});
  write(made, tensor);
  return made;
}

/// A copy on the CPU.
at::Tensor to_host(const at::Tensor& tensor) {
  return seen_by_host(tensor).clone(at::MemoryFormat::Contiguous);
}

/// As a kernel on the current stream would: the tensor has these contents once finish() is called, and what the stream
/// is given afterwards waits for it.
void write_later(const at::Tensor& to, const at::Tensor& from) {
  const std::scoped_lock lock(mutex);
  Progress& last = last_of[to.device().index()];
  last = std::make_shared<std::atomic<bool>>(false);
  pending.push_back({to, from, last});
}

/// What all streams have been given is over.
void finish() {
  const std::scoped_lock lock(mutex);
  for (const Pending& one : pending) {
    write(one.to, one.from);
    *one.progress = true;
  }
  pending.clear();
}

pybind11::dict counts() {
  fake_cuda_counts seen{};
  fake_cuda_count(&seen);
  pybind11::dict result;
  result["pinned_copies"] = seen.pinned_copies;
  result["pageable_copies"] = seen.pageable_copies;
  result["bytes_to_host"] = seen.bytes_to_host;
  result["bytes_to_device"] = seen.bytes_to_device;
  result["registered"] = seen.registered;
  result["wrong"] = seen.wrong;
  result["recorded"] = recorded.load();
  return result;
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("to_device", &to_device, pybind11::arg("tensor"), pybind11::arg("index") = 0);
  module.def("to_host", &to_host);
  module.def("write_later", &write_later);
  module.def("finish", &finish);
  module.def("counts", &counts);
  module.def("fail",
             [](const std::string& call, int status, int times) { fake_cuda_fail(call.c_str(), status, times); });
}
