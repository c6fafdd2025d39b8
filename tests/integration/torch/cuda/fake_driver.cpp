// SPDX-License-Identifier: Apache-2.0
// A driver library of CUDA for tests: two devices, whose memory the host cannot access. Copies are made when their
// stream is synchronized and no earlier, and each call is checked as strictly as the documentation of CUDA allows.
#include "tests/integration/torch/cuda/fake_driver.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace {

constexpr int kDevices = 2;
constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kNotInitialized = 3;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidContext = 201;
constexpr int kAlreadyRegistered = 712;
constexpr int kNotRegistered = 713;

using Address = unsigned long long;

struct Allocation {
  int device;
  std::size_t bytes;
  char* view;
};
struct Copy {
  void* to;  // as the host sees both
  const void* from;
  std::size_t bytes;
};
struct Stream {
  int device;
  std::vector<Copy> copies;
};

struct Fake {
  std::mutex mutex;
  bool is_initialized = false;
  std::map<std::uintptr_t, Allocation> allocations;
  std::map<std::uintptr_t, std::size_t> registered;
  std::set<Stream*> streams;
  std::map<std::string, std::pair<int, int>> failures;  // status, times
  fake_cuda_counts counts{};
};

Fake& fake() {
  static auto& fake = *new Fake;
  return fake;
}

struct Context {
  int device;
};
Context contexts[kDevices] = {{0}, {1}};
bool retained[kDevices];
thread_local std::vector<Context*> current;

int wrong(const char* call, const char* what, int status) {
  std::fprintf(stderr, "fake CUDA driver: %s: %s\n", call, what);
  ++fake().counts.wrong;
  return status;
}

/// REQUIRES: the mutex. 0, or what the call is to return.
int begin(const char* call, bool needs_context = true) {
  if (!fake().is_initialized) {
    return wrong(call, "before cuInit", kNotInitialized);
  }
  if (const auto failure = fake().failures.find(call); failure != fake().failures.end() && failure->second.second > 0) {
    --failure->second.second;
    return failure->second.first;
  }
  return needs_context && current.empty() ? wrong(call, "no context is current", kInvalidContext) : kSuccess;
}

/// REQUIRES: the mutex. What the device has there; null: it is not all in one allocation of this device.
char* view_of(std::uintptr_t address, std::size_t bytes, int device) {
  auto after = fake().allocations.upper_bound(address);
  if (after == fake().allocations.begin()) {
    return nullptr;
  }
  const auto& [base, allocation] = *--after;
  const std::size_t offset = address - base;
  return allocation.device == device && offset <= allocation.bytes && bytes <= allocation.bytes - offset
             ? allocation.view + offset
             : nullptr;
}

/// REQUIRES: the mutex.
bool is_registered(const void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  auto after = fake().registered.upper_bound(begin);
  return after != fake().registered.begin() && (--after, begin + bytes <= after->first + after->second);
}

int add_copy(const char* call, bool to_device, const void* host, Address address, std::size_t bytes, void* stream) {
  const std::scoped_lock lock(fake().mutex);
  if (const int status = begin(call); status != kSuccess) {
    return status;
  }
  auto* const used = static_cast<Stream*>(stream);
  if (fake().streams.count(used) == 0 || used->device != current.back()->device) {
    return wrong(call, "the stream is not one of the current context", kInvalidContext);
  }
  char* const view = view_of(address, bytes, used->device);
  if (view == nullptr || host == nullptr || bytes == 0) {
    return wrong(call, "an address is wrong", kInvalidValue);
  }
  ++(is_registered(host, bytes) ? fake().counts.pinned_copies : fake().counts.pageable_copies);
  (to_device ? fake().counts.bytes_to_device : fake().counts.bytes_to_host) += static_cast<long>(bytes);
  used->copies.push_back(to_device ? Copy{view, host, bytes} : Copy{const_cast<void*>(host), view, bytes});
  return kSuccess;
}

}  // namespace

extern "C" {

int cuInit(unsigned flags) {
  const std::scoped_lock lock(fake().mutex);
  fake().is_initialized = flags == 0;
  if (const int status = begin("cuInit", false); status != kSuccess) {
    return status;
  }
  return flags == 0 ? kSuccess : kInvalidValue;
}

int cuDeviceGet(int* device, int ordinal) {
  const std::scoped_lock lock(fake().mutex);
  if (const int status = begin("cuDeviceGet", false); status != kSuccess) {
    return status;
  }
  if (ordinal < 0 || ordinal >= kDevices) {
    return wrong("cuDeviceGet", "there is no such device", kInvalidDevice);
  }
  *device = ordinal;
  return kSuccess;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  const std::scoped_lock lock(fake().mutex);
  if (const int status = begin("cuDevicePrimaryCtxRetain", false); status != kSuccess) {
    return status;
  }
  retained[device] = true;
  *context = &contexts[device];
  return kSuccess;
}

int cuCtxPushCurrent_v2(void* context) {
  const std::scoped_lock lock(fake().mutex);
  if (const int status = begin("cuCtxPushCurrent_v2", false); status != kSuccess) {
    return status;
  }
  auto* const pushed = static_cast<Context*>(context);
  if ((pushed != &contexts[0] && pushed != &contexts[1]) || !retained[pushed->device]) {
    return wrong("cuCtxPushCurrent_v2", "that is no context", kInvalidContext);
  }
  current.push_back(pushed);
  return kSuccess;
}

int cuCtxPopCurrent_v2(void** context) {
  const std::scoped_lock lock(fake().mutex);
  if (const int status = begin("cuCtxPopCurrent_v2"); status != kSuccess) {
    return status;
  }
  *context = current.back();
  current.pop_back();
  return kSuccess;
}

int cuMemHostRegister_v2(void* address, std::size_t bytes, unsigned flags) {
  const std::scoped_lock lock(fake().mutex);
  if (const int status = begin("cuMemHostRegister_v2"); status != kSuccess) {
    return status;
  }
  const auto begin_address = reinterpret_cast<std::uintptr_t>(address);
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  if (bytes == 0 || begin_address % page != 0 || bytes % page != 0 || flags > 1) {
    return wrong("cuMemHostRegister_v2", "not whole pages, or wrong flags", kInvalidValue);
  }
  if (is_registered(address, 1)) {
    return wrong("cuMemHostRegister_v2", "registered already", kAlreadyRegistered);
  }
  fake().registered.emplace(begin_address, bytes);
  return kSuccess;
}

int cuMemHostUnregister(void* address) {
  const std::scoped_lock lock(fake().mutex);
  if (const int status = begin("cuMemHostUnregister"); status != kSuccess) {
    return status;
  }
  return fake().registered.erase(reinterpret_cast<std::uintptr_t>(address)) == 1
             ? kSuccess
             : wrong("cuMemHostUnregister", "not registered", kNotRegistered);
}

int cuStreamCreate(void** stream, unsigned flags) {
  const std::scoped_lock lock(fake().mutex);
  if (const int status = begin("cuStreamCreate"); status != kSuccess) {
    return status;
  }
  if (flags > 1) {
    return wrong("cuStreamCreate", "wrong flags", kInvalidValue);
  }
  auto* const made = new Stream{current.back()->device, {}};
  fake().streams.insert(made);
  *stream = made;
  return kSuccess;
}

int cuStreamSynchronize(void* stream) {
  const std::scoped_lock lock(fake().mutex);
  if (const int status = begin("cuStreamSynchronize"); status != kSuccess) {
    return status;
  }
  auto* const used = static_cast<Stream*>(stream);
  if (fake().streams.count(used) == 0 || used->device != current.back()->device) {
    return wrong("cuStreamSynchronize", "the stream is not one of the current context", kInvalidContext);
  }
  for (const Copy& copy : used->copies) {
    std::memcpy(copy.to, copy.from, copy.bytes);
  }
  used->copies.clear();
  return kSuccess;
}

int cuMemcpyDtoHAsync_v2(void* to, Address from, std::size_t bytes, void* stream) {
  return add_copy("cuMemcpyDtoHAsync_v2", false, to, from, bytes, stream);
}

int cuMemcpyHtoDAsync_v2(Address to, const void* from, std::size_t bytes, void* stream) {
  return add_copy("cuMemcpyHtoDAsync_v2", true, from, to, bytes, stream);
}

int cuGetErrorName(int status, const char** name) {
  static const std::map<int, const char*> names{
      {kInvalidValue, "CUDA_ERROR_INVALID_VALUE"}, {2, "CUDA_ERROR_OUT_OF_MEMORY"}, {100, "CUDA_ERROR_NO_DEVICE"}};
  const auto found = names.find(status);
  *name = found == names.end() ? nullptr : found->second;
  return found == names.end() ? kInvalidValue : kSuccess;
}

void* fake_cuda_allocate(int device, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t size = (bytes + page) / page * page;
  const int file = ::memfd_create("fake-device", MFD_CLOEXEC);
  void* address = MAP_FAILED;
  void* view = MAP_FAILED;
  if (::ftruncate(file, static_cast<off_t>(size)) == 0) {
    address = ::mmap(nullptr, size, PROT_NONE, MAP_SHARED, file, 0);
    view = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  ::close(file);
  if (address == MAP_FAILED || view == MAP_FAILED) {
    return nullptr;
  }
  const std::scoped_lock lock(fake().mutex);
  fake().allocations[reinterpret_cast<std::uintptr_t>(address)] = {device, bytes, static_cast<char*>(view)};
  return address;
}

void fake_cuda_free(void* address) {
  const std::scoped_lock lock(fake().mutex);
  const auto found = fake().allocations.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == fake().allocations.end()) {
    return;
  }
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t size = (found->second.bytes + page) / page * page;
  ::munmap(found->second.view, size);
  ::munmap(address, size);
  fake().allocations.erase(found);
}

void* fake_cuda_view(void* address) {
  const std::scoped_lock lock(fake().mutex);
  char* view = nullptr;
  for (int device = 0; device < kDevices && view == nullptr; ++device) {
    view = view_of(reinterpret_cast<std::uintptr_t>(address), 0, device);
  }
  return view;
}

void fake_cuda_count(fake_cuda_counts* counts) {
  const std::scoped_lock lock(fake().mutex);
  *counts = fake().counts;
  counts->registered = static_cast<long>(fake().registered.size());
}

void fake_cuda_fail(const char* call, int status, int times) {
  const std::scoped_lock lock(fake().mutex);
  fake().failures[call] = {status, times};
}
}
