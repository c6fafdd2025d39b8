// SPDX-License-Identifier: Apache-2.0
#include "python/shmem_torch/cuda_driver.hpp"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <vector>

namespace shmem_torch {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";
constexpr const char* kPinned = "SHMEM_TORCH_PINNED";

// These belong to the driver's interface, which is the same in all versions of CUDA from 11 on.
using Status = int;  // 0: success
using Address = unsigned long long;
constexpr unsigned kOfAllContexts = 1;  // CU_MEMHOSTREGISTER_PORTABLE
constexpr unsigned kNonBlocking = 1;    // CU_STREAM_NON_BLOCKING: no order with the streams of the program

struct Calls {
  Status (*init)(unsigned flags);
  Status (*device_get)(int* device, int ordinal);
  Status (*primary_context_retain)(void** context, int device);
  Status (*context_push)(void* context);
  Status (*context_pop)(void** context);
  Status (*host_register)(void* address, std::size_t bytes, unsigned flags);
  Status (*host_unregister)(void* address);
  Status (*stream_create)(void** stream, unsigned flags);
  Status (*stream_synchronize)(void* stream);
  Status (*copy_to_host)(void* to, Address from, std::size_t bytes, void* stream);
  Status (*copy_to_device)(Address to, const void* from, std::size_t bytes, void* stream);
  Status (*error_name)(Status status, const char** name);
};

/// One per process, never destroyed: at exit the driver may end before the last thread that uses it.
struct Driver {
  std::string problem{};
  Calls calls{};
  bool pins = true;

  Driver();
  [[nodiscard]] std::string text_of(const char* what, Status status) const {
    const char* name = nullptr;
    return std::string(what) + ": " +
           (calls.error_name(status, &name) == 0 && name != nullptr ? name : "error " + std::to_string(status));
  }
  void require(const char* what, Status status) const {
    if (status != 0) {
      throw std::runtime_error(text_of(what, status));
    }
  }
  /// The context of a device that PyTorch uses, too.
  void* context_of(int device);
  /// A stream of this device that no one uses now.
  void* take_stream(int device);
  void give_stream(int device, void* stream);

 private:
  template <typename Function>
  void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    if (function == nullptr && problem.empty()) {
      problem = std::string(kLibrary) + " has no " + name;
    }
  }

  std::mutex mutex_{};
  std::map<int, void*> contexts_{};
  std::map<int, std::vector<void*>> streams_{};
};

Driver::Driver() {
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    problem = why != nullptr ? why : std::string(kLibrary) + " cannot be loaded";
    return;
  }
  find(library, "cuInit", calls.init);
  find(library, "cuDeviceGet", calls.device_get);
  find(library, "cuDevicePrimaryCtxRetain", calls.primary_context_retain);
  find(library, "cuCtxPushCurrent_v2", calls.context_push);
  find(library, "cuCtxPopCurrent_v2", calls.context_pop);
  find(library, "cuMemHostRegister_v2", calls.host_register);
  find(library, "cuMemHostUnregister", calls.host_unregister);
  find(library, "cuStreamCreate", calls.stream_create);
  find(library, "cuStreamSynchronize", calls.stream_synchronize);
  find(library, "cuMemcpyDtoHAsync_v2", calls.copy_to_host);
  find(library, "cuMemcpyHtoDAsync_v2", calls.copy_to_device);
  find(library, "cuGetErrorName", calls.error_name);
  if (problem.empty()) {
    const Status status = calls.init(0);
    problem = status == 0 ? "" : text_of("cuInit", status);
  }
  const char* const pinned = std::getenv(kPinned);
  pins = pinned == nullptr || std::string(pinned) != "0";
}

Driver& driver() {
  static auto& driver = *new Driver;
  return driver;
}

void* Driver::context_of(int device) {
  const std::scoped_lock lock(mutex_);
  void*& context = contexts_[device];
  if (context == nullptr) {
    int number = 0;
    require("cuDeviceGet", calls.device_get(&number, device));
    require("cuDevicePrimaryCtxRetain", calls.primary_context_retain(&context, number));
  }
  return context;
}

void* Driver::take_stream(int device) {
  {
    const std::scoped_lock lock(mutex_);
    auto& free = streams_[device];
    if (!free.empty()) {
      void* const stream = free.back();
      free.pop_back();
      return stream;
    }
  }
  void* stream = nullptr;
  require("cuStreamCreate", calls.stream_create(&stream, kNonBlocking));
  return stream;
}

void Driver::give_stream(int device, void* stream) {
  const std::scoped_lock lock(mutex_);
  streams_[device].push_back(stream);
}

// ---- Pinned memory ----

/// To pin memory takes longer than to copy it, so it is kept.
constexpr std::size_t kMostFree = std::size_t{1} << 30;
constexpr std::size_t kUnit = std::size_t{64} << 10;

struct Piece {
  void* address;
  std::size_t size;
  int device;  // whose context has pinned it
  bool is_pinned;
};

class Pool {
 public:
  std::optional<Piece> take(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    const auto found = free_.lower_bound(bytes);
    if (found == free_.end() || found->first > 2 * bytes) {
      return std::nullopt;
    }
    const Piece piece = found->second;
    free_.erase(found);
    free_bytes_ -= piece.size;
    return piece;
  }
  /// False: there is enough.
  bool give(const Piece& piece) {
    const std::scoped_lock lock(mutex_);
    if (free_bytes_ + piece.size > kMostFree) {
      return false;
    }
    free_.emplace(piece.size, piece);
    free_bytes_ += piece.size;
    return true;
  }

 private:
  std::mutex mutex_;
  std::multimap<std::size_t, Piece> free_;  // by size
  std::size_t free_bytes_ = 0;
};

Pool& pool() {
  static auto& pool = *new Pool;
  return pool;
}

/// The driver's calls of this thread are about this device.
class CurrentContext {
 public:
  explicit CurrentContext(int device) {
    driver().require("cuCtxPushCurrent", driver().calls.context_push(driver().context_of(device)));
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  ~CurrentContext() {
    void* context = nullptr;
    driver().calls.context_pop(&context);
  }
};

bool pin(const Piece& piece) {
  try {
    const CurrentContext current(piece.device);
    return driver().calls.host_register(piece.address, piece.size, kOfAllContexts) == 0;
  } catch (const std::runtime_error&) {
    return false;  // the copies will say why
  }
}

Piece make_piece(std::size_t size, int device) {
  void* const address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    throw std::bad_alloc();
  }
  Piece piece{address, size, device, false};
  piece.is_pinned = driver().pins && pin(piece);
  return piece;
}

void end_piece(const Piece& piece) {
  if (piece.is_pinned) {
    const CurrentContext current(piece.device);  // was one before
    driver().calls.host_unregister(piece.address);
  }
  ::munmap(piece.address, piece.size);
}

Address address_of(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

}  // namespace

const std::string& cuda_problem() {
  return driver().problem;
}

PinnedMemory::PinnedMemory(std::size_t bytes, int device)
    : address_(nullptr), size_(0), device_(device), is_pinned_(false) {
  const std::size_t size = (std::max(bytes, std::size_t{1}) + kUnit - 1) / kUnit * kUnit;
  const auto kept = pool().take(size);
  const Piece piece = kept ? *kept : make_piece(size, device);
  address_ = piece.address;
  size_ = piece.size;
  device_ = piece.device;
  is_pinned_ = piece.is_pinned;
}

PinnedMemory::~PinnedMemory() {
  if (address_ == nullptr) {
    return;
  }
  const Piece piece{address_, size_, device_, is_pinned_};
  try {
    if (pool().give(piece)) {
      return;
    }
  } catch (const std::bad_alloc&) {  // for the list
  }
  end_piece(piece);
}

// ---- Copies ----

DeviceCopies::DeviceCopies(int device) : device_(device) {
  Driver& used = driver();
  used.require("cuCtxPushCurrent", used.calls.context_push(used.context_of(device)));
  try {
    stream_ = used.take_stream(device);
  } catch (...) {
    void* context = nullptr;
    used.calls.context_pop(&context);
    throw;
  }
}

DeviceCopies::~DeviceCopies() {
  Driver& used = driver();
  if (!is_finished_) {
    used.calls.stream_synchronize(stream_);
  }
  void* context = nullptr;
  used.calls.context_pop(&context);
  try {
    used.give_stream(device_, stream_);
  } catch (const std::bad_alloc&) {  // for the list: the stream is lost
  }
}

void DeviceCopies::to_host(void* to, const void* from, std::size_t bytes) {
  const Driver& used = driver();
  is_finished_ = false;
  used.require("cuMemcpyDtoHAsync", used.calls.copy_to_host(to, address_of(from), bytes, stream_));
}

void DeviceCopies::to_device(void* to, const void* from, std::size_t bytes) {
  const Driver& used = driver();
  is_finished_ = false;
  used.require("cuMemcpyHtoDAsync", used.calls.copy_to_device(address_of(to), from, bytes, stream_));
}

void DeviceCopies::finish() {
  const Driver& used = driver();
  used.require("cuStreamSynchronize", used.calls.stream_synchronize(stream_));
  is_finished_ = true;
}

}  // namespace shmem_torch
