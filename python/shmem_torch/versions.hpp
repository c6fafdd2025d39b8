// SPDX-License-Identifier: Apache-2.0
// All that differs between PyTorch 1.13 and 2.14 for this module. Its other files are written for the classes below,
// which have the virtual functions of PyTorch 2.14 with every version: where torch's own class lacks one, nothing but
// this module calls it. The versions between have added them one by one: what torch has is then overridden here.
#pragma once

#include <torch/version.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#define SHMEM_TORCH_VERSION (TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR)

#if SHMEM_TORCH_VERSION >= 200
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif

// Symmetric memory: its header, and how it is made there.
#if SHMEM_TORCH_VERSION >= 214
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp>
#define SHMEM_TORCH_HAS_SYMMETRIC_MEMORY 1
#elif SHMEM_TORCH_VERSION >= 206 && __has_include(<torch/csrc/distributed/c10d/SymmetricMemory.hpp>)
#include <torch/csrc/distributed/c10d/SymmetricMemory.hpp>
#define SHMEM_TORCH_HAS_SYMMETRIC_MEMORY (SHMEM_TORCH_VERSION == 206)
#else
#define SHMEM_TORCH_HAS_SYMMETRIC_MEMORY 0
#endif

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace shmem_torch {

using WorkPointer = c10::intrusive_ptr<c10d::Work>;
using Tensors = std::vector<at::Tensor>;

#if SHMEM_TORCH_VERSION >= 200
using TorchBackend = c10d::Backend;
#else
using TorchBackend = c10d::ProcessGroup;
#endif
#if SHMEM_TORCH_VERSION >= 206
using EndedWork = c10d::WorkInfo;
#else
struct EndedWork {  // nothing asks for it
  using Time = std::chrono::time_point<std::chrono::steady_clock>;
  EndedWork(c10d::OpType of, std::uint64_t number, Time begin, Time end, std::chrono::duration<float> /*active*/)
      : opType(of), seq(number), timeStarted(begin), timeFinished(end) {}
  c10d::OpType opType;
  std::uint64_t seq;
  Time timeStarted;
  Time timeFinished;
};
#endif
using WorkClock = decltype(EndedWork::timeStarted)::clock;
using CompletionHook = std::function<void(std::shared_ptr<EndedWork>)>;
using AbortHook = std::function<void()>;
using BackendOptions = TorchBackend::Options;

/// torch's, or the same one.
template <typename Backend, typename = void>
struct ErrorTypeOf {
  enum class type { SUCCESS, TIMEOUT, COMM_ERROR, REMOTE_ERROR };
};
template <typename Backend>
struct ErrorTypeOf<Backend, std::void_t<decltype(std::declval<Backend&>().getError())>> {
  using type = decltype(std::declval<Backend&>().getError());
};
using ErrorType = ErrorTypeOf<TorchBackend>::type;

/// The OpType of torch, which has had no such one before 2.0.
#if SHMEM_TORCH_VERSION >= 200
constexpr c10d::OpType kCoalesced = c10d::OpType::COALESCED;
#else
constexpr c10d::OpType kCoalesced = c10d::OpType::UNKNOWN;
#endif

#ifdef C10D_BACKEND_HAS_RECONFIGURE
using c10d::ReconfigureHandle;
using c10d::ReconfigureOptions;
#else
using ReconfigureHandle = std::string;
struct ReconfigureOptions {
  std::int64_t uuid = 0;
  std::variant<std::unordered_set<ReconfigureHandle>, std::vector<ReconfigureHandle>> handles;
  std::optional<std::chrono::milliseconds> timeout;
};
#endif

#ifdef C10D_BACKEND_HAS_WINDOW
using c10d::PutOptions;
using c10d::SignalOptions;
using c10d::WaitSignalOptions;
using c10d::WindowAccessType;
using c10d::WindowAttr;
using WindowBase = c10d::Window;
#else
struct PutOptions {
  std::chrono::milliseconds timeout{-1};
};
struct SignalOptions : PutOptions {};
struct WaitSignalOptions : PutOptions {};
enum class WindowAccessType { UNIFIED, SEPARATE };
struct WindowAttr {
  WindowAccessType access_type = WindowAccessType::UNIFIED;
};
class WindowBase : public torch::CustomClassHolder {
 public:
  virtual void tensor_register(const at::Tensor& tensor, bool owning) = 0;
  virtual void tensor_deregister() = 0;
  virtual WorkPointer put(const at::Tensor& tensor, std::int64_t rank, std::int64_t offset, bool asynchronous,
                          const PutOptions& options) = 0;
  virtual at::Tensor map_remote_tensor(std::int64_t rank) = 0;
  virtual WorkPointer signal(std::int64_t rank, bool asynchronous, const SignalOptions& options) = 0;
  virtual WorkPointer wait_signal(std::int64_t rank, bool asynchronous, const WaitSignalOptions& options) = 0;
  virtual WindowAttr get_attr(std::int64_t rank) = 0;
};
#endif

/// The base of this module's works.
class WorkBase : public c10d::Work {
 public:
  using Work::Work;
#if SHMEM_TORCH_VERSION < 214
  virtual std::uint64_t getSequencenumber() const {
    return 0;
  }
  virtual std::chrono::milliseconds getTimeout() const {
    return {};
  }
#endif
};

/// The base of the process group: a Backend since PyTorch 2.0, a ProcessGroup before.
class BackendBase : public TorchBackend {
 public:
  using TorchBackend::TorchBackend;

#if SHMEM_TORCH_VERSION < 200
  // These bracket messages; what they send goes by itself.
  void startCoalescing() override {}
  virtual WorkPointer endCoalescing() {
    return {};
  }
  void endCoalescing(std::vector<WorkPointer>& /*works*/) override {}
  virtual WorkPointer allgather_into_tensor_coalesced(Tensors&, Tensors&, const c10d::AllgatherOptions&) {
    return {};
  }
  virtual WorkPointer reduce_scatter_tensor_coalesced(Tensors&, Tensors&, const c10d::ReduceScatterOptions&) {
    return {};
  }
#endif
#if SHMEM_TORCH_VERSION < 214
  virtual bool supportsCoalescing() const {
    return true;
  }
  virtual bool supportsSplitting() const {
    return false;
  }
  virtual bool supportsShrinking() const {
    return false;
  }
  virtual bool supportsReconfigure() const {
    return false;
  }
  virtual bool supportsWindow() const {
    return false;
  }
  virtual WorkPointer gather_into_tensor(at::Tensor&, at::Tensor&, const c10d::GatherOptions&) {
    return {};
  }
  virtual c10::intrusive_ptr<BackendOptions> getBackendOptions() {
    return {};
  }
  virtual c10::intrusive_ptr<TorchBackend> split(const c10::intrusive_ptr<c10d::Store>&, const std::vector<int>&,
                                                 const c10::intrusive_ptr<BackendOptions>&) {
    return {};
  }
  virtual c10::intrusive_ptr<TorchBackend> merge(const c10::intrusive_ptr<c10d::Store>&,
                                                 const c10::intrusive_ptr<BackendOptions>&, const int&, const int&) {
    return {};
  }
  virtual c10::intrusive_ptr<TorchBackend> shrink(const std::vector<std::int64_t>&, int,
                                                  const c10::intrusive_ptr<BackendOptions>&) {
    return {};
  }
  virtual ReconfigureHandle get_reconfigure_handle() const {
    return {};
  }
  virtual WorkPointer reconfigure(const ReconfigureOptions&) {
    return {};
  }
  virtual c10::intrusive_ptr<WindowBase> new_window(const std::optional<at::Tensor>&) {
    return {};
  }
  virtual void setTimeout(std::chrono::milliseconds) {}
  virtual void addEphemeralTimeout(const std::chrono::milliseconds&) {}
  virtual void registerAbortHook(std::int64_t, AbortHook) {}
  virtual void unregisterAbortHook(std::int64_t) {}
  virtual void registerOnCompletionHook(CompletionHook&&) {}
  virtual void waitForPendingWorks() {}
  virtual void enableCollectivesTiming() {}
  virtual ErrorType getError() {
    return ErrorType::SUCCESS;
  }
  virtual void abort() {}
  virtual void shutdown() {}
#endif

 protected:
  /// After reconfigure().
  void become([[maybe_unused]] int rank, [[maybe_unused]] int size) {
#ifdef C10D_BACKEND_HAS_RECONFIGURE
    rank_ = rank;
    size_ = size;
#endif
  }
  /// torch asks whether there is one.
  void note_completion_hook([[maybe_unused]] const CompletionHook& hook) {
#if SHMEM_TORCH_VERSION >= 206
    onCompletionHook_ = hook;
#endif
  }
};

#if SHMEM_TORCH_HAS_SYMMETRIC_MEMORY
class SymmetricMemoryBase : public c10d::symmetric_memory::SymmetricMemory {
 public:
#if SHMEM_TORCH_VERSION < 214
  virtual std::size_t get_offset() {
    return 0;
  }
  virtual c10::Device get_device() {
    return c10::kCPU;
  }
  virtual bool world_within_direct_access() {
    return true;
  }
#else
  // torch's own make these of the pointers; nothing calls them here.
  virtual std::size_t get_signal_pad_size() = 0;
  virtual at::Tensor get_buffer(int, c10::IntArrayRef, c10::ScalarType, std::int64_t) = 0;
  virtual at::Tensor get_signal_pad(int, c10::IntArrayRef, std::optional<c10::ScalarType>, std::int64_t) = 0;
#endif
};

class SymmetricMemoryAllocatorBase : public c10d::symmetric_memory::SymmetricMemoryAllocator {
 public:
#if SHMEM_TORCH_VERSION < 214
  virtual c10::DeviceType supported_device_type() {
    return c10::DeviceType::CPU;
  }
  virtual std::string name() {
    return "";
  }
  virtual bool has_allocation(void*) {
    return false;
  }
#endif
};

/// The bytes that the program has asked for, or at least these.
inline std::size_t signal_pad_size([[maybe_unused]] std::size_t least) {
#if SHMEM_TORCH_VERSION >= 214
  return c10d::symmetric_memory::get_signal_pad_size();
#else
  return least;
#endif
}

/// Of the process group with this name.
inline c10d::symmetric_memory::GroupInfo group_info(const std::string& name) {
#if SHMEM_TORCH_VERSION >= 214
  const auto group = c10d::resolve_process_group(name);
  return {group->getRank(), group->getSize(), group->getStore()};
#else
  return c10d::symmetric_memory::get_group_info(name);
#endif
}

inline void register_allocator(const c10::intrusive_ptr<SymmetricMemoryAllocatorBase>& allocator) {
#if SHMEM_TORCH_VERSION >= 214
  c10d::symmetric_memory::register_availability(allocator->name(), allocator);
#endif
  c10d::symmetric_memory::register_allocator(c10::DeviceType::CPU, allocator);
}
#endif

/// Options as they describe a group.
inline c10::intrusive_ptr<BackendOptions> options_of(std::chrono::milliseconds timeout,
                                                     [[maybe_unused]] const std::string& name,
                                                     [[maybe_unused]] const std::vector<std::uint64_t>& ranks) {
  auto options = c10::make_intrusive<BackendOptions>("shmem", timeout);
#if SHMEM_TORCH_VERSION >= 214
  options->group_name = name;
  options->global_ranks_in_group = ranks;
#endif
  return options;
}

/// The name that torch has given to a group that is part of another one.
inline std::string name_in([[maybe_unused]] const BackendOptions& options) {
#if SHMEM_TORCH_VERSION >= 214
  return options.group_name;
#else
  return {};
#endif
}

}  // namespace shmem_torch
