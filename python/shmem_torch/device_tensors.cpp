// SPDX-License-Identifier: Apache-2.0
#include "python/shmem_torch/device_tensors.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <stdexcept>
#include <string>
#include <thread>

#include "python/shmem_torch/tensors.hpp"

namespace shmem_torch {
namespace {

constexpr at::DeviceType kCuda = at::DeviceType::CUDA;

c10::Event event_of_current_stream(at::DeviceIndex device) {
  c10::Event event(kCuda);
  event.record(c10::impl::VirtualGuardImpl(kCuda).getStream(at::Device(kCuda, device)));
  return event;
}

/// Not by the event's synchronize(): versions of PyTorch before 2.4 have none, and it has no limit.
void wait_for(const c10::Event& event, std::chrono::milliseconds limit) {
  using Clock = std::chrono::steady_clock;
  constexpr int kLooks = 100;
  constexpr std::chrono::microseconds kBetweenLooks{20};
  const auto begin = Clock::now();
  for (int looks = 0; !event.query(); ++looks) {
    if (looks < kLooks) {
      std::this_thread::yield();
      continue;
    }
    if (limit.count() >= 0 && Clock::now() - begin > limit) {
      throw std::runtime_error("the device has not made the tensor within " + std::to_string(limit.count()) + " ms");
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace

void* DeviceTensors::add(const at::Tensor& tensor, int use) {
  void* const place = buffer(bytes_of(tensor), tensor);
  add_at(place, tensor, use);
  return place;
}

void DeviceTensors::add_at(void* place, const at::Tensor& tensor, int use) {
  const at::DeviceIndex device = tensor.device().index();
  ready_.erase(device);  // the later event of a stream is that of all before
  ready_.emplace(device, event_of_current_stream(device));
  parts_.push_back({tensor, place, use});
}

void* DeviceTensors::buffer(std::size_t bytes, const at::Tensor& like) {
  return memories_.emplace_back(bytes, like.device().index()).data();
}

/// Parts of one device after the other.
template <typename Copy>
void DeviceTensors::each_part(int use, Copy copy) const {
  for (const auto& [device, ready] : ready_) {
    DeviceCopies copies(device);
    for (const Part& part : parts_) {
      if (part.tensor.device().index() == device && (part.use & use) != 0 && part.tensor.numel() != 0) {
        copy(copies, part);
      }
    }
    copies.finish();
  }
}

void DeviceTensors::fetch(std::chrono::milliseconds limit) {
  for (const auto& [device, ready] : ready_) {
    wait_for(ready, limit);
  }
  each_part(kRead, [](DeviceCopies& copies, const Part& part) {
    copies.to_host(part.place, part.tensor.data_ptr(), bytes_of(part.tensor));
  });
}

void DeviceTensors::store() const {
  each_part(kWritten, [](DeviceCopies& copies, const Part& part) {
    copies.to_device(part.tensor.data_ptr(), part.place, bytes_of(part.tensor));
  });
}

void finish_current_stream(const at::Tensor& tensor) {
  wait_for(event_of_current_stream(tensor.device().index()), std::chrono::milliseconds(-1));
}

}  // namespace shmem_torch
