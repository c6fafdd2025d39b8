// SPDX-License-Identifier: Apache-2.0
#include "python/shmem_torch/window.hpp"

#include <c10/core/CPUAllocator.h>

#include <array>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "python/core/without_python.hpp"
#include "python/shmem_torch/signals.hpp"

namespace shmem_torch {
constexpr std::size_t kMostDimensions = 16;

/// What a rank registers, as the others get it.
struct Registered {
  std::uint64_t bytes = 0;       // of the storage that is to be moved; 0: none
  std::uint64_t allocation = 0;  // the tensor's in symmetric memory, from 1 on; 0: the storage is to be moved
  std::uint64_t offset = 0;      // of the tensor, in bytes
  std::int64_t elements = 0;
  std::int32_t type = 0;  // at::ScalarType
  std::int32_t refused = 0;
  std::int64_t dimensions = 0;
  std::array<std::int64_t, kMostDimensions> sizes{};
};

/// From one rank to another, since the tensor was registered.
using SignalCount = std::atomic<std::uint32_t>;
static_assert(SignalCount::is_always_lock_free && sizeof(SignalCount) == sizeof(std::uint32_t));

namespace {

/// Owned by a storage that was moved: where it is, and where it was. Arrays of other libraries may still refer to that.
struct MovedStorage {
  std::shared_ptr<GroupMemory> memory;
  c10::DataPtr before;
};

/// Why this tensor cannot be registered, or "".
std::string problem_of(const at::Tensor& tensor, bool is_symmetric) {
  if (!tensor.defined() || tensor.layout() != at::kStrided || !tensor.device().is_cpu()) {
    return "the tensor is not a dense tensor of the CPU";
  }
  if (!tensor.is_contiguous()) {
    return "the tensor is not contiguous";
  }
  if (static_cast<std::size_t>(tensor.dim()) > kMostDimensions) {
    return "the tensor has " + std::to_string(tensor.dim()) + " dimensions, more than " +
           std::to_string(kMostDimensions);
  }
  if (!is_symmetric && tensor.storage().data_ptr().get_deleter() != c10::GetCPUAllocator()->raw_deleter()) {
    return "the tensor's memory is not of PyTorch's allocator, so that it cannot be moved to symmetric memory; "
           "register a "
           "copy, or a tensor of shmem_torch.empty";
  }
  return "";
}

std::uint64_t offset_of(const at::Tensor& tensor) {
  return static_cast<std::uint64_t>(tensor.storage_offset()) * tensor.element_size();
}

Registered described(const at::Tensor& tensor, const std::optional<FoundMemory>& symmetric) {
  Registered mine;
  if (symmetric) {
    mine.allocation = symmetric->number;
    mine.offset = symmetric->offset;
  } else {
    mine.bytes = tensor.storage().nbytes();
    mine.offset = offset_of(tensor);
  }
  mine.elements = tensor.numel();
  mine.type = static_cast<std::int32_t>(tensor.scalar_type());
  mine.dimensions = tensor.dim();
  std::copy(tensor.sizes().begin(), tensor.sizes().end(), mine.sizes.begin());
  return mine;
}

}  // namespace

struct Window::Area {
  std::vector<Registered> ranks;
  std::shared_ptr<GroupMemory> data;     // with the tensors of all ranks
  std::shared_ptr<GroupMemory> signals;  // of each rank, a count from each other one
  at::Tensor owned{};
  std::mutex claiming{};
  std::vector<std::uint32_t> claimed{};  // under it: signals of each rank that somebody waits for, or has

  [[nodiscard]] const Registered& of(std::int64_t rank) const { return ranks[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] char* tensor_of(std::int64_t rank) const {
    return static_cast<char*>(data->address_of(static_cast<int>(rank))) + of(rank).offset;
  }
  [[nodiscard]] SignalCount& signals_at(std::int64_t to, std::int64_t from) const {
    return static_cast<SignalCount*>(signals->address_of(static_cast<int>(to)))[from];
  }
  [[nodiscard]] c10::ScalarType type_of(std::int64_t rank) const { return static_cast<c10::ScalarType>(of(rank).type); }
};

namespace {

/// Completed when the signal has come, or cannot come any more. Nothing but the caller looks for it.
class SignalWork final : public WorkBase {
 public:
  SignalWork(std::shared_ptr<Engine> engine, std::shared_ptr<void> keeps, const SignalCount& count,
             std::uint32_t target, int peer, std::chrono::milliseconds timeout)
      : WorkBase(-1, c10d::OpType::UNKNOWN),
        engine_(std::move(engine)),
        keeps_(std::move(keeps)),
        count_(count),
        target_(target),
        peer_(peer),
        wait_("Window.wait_signal(rank ", peer, engine_->group, timeout) {}

  bool isCompleted() override {
    engine_->queue.require_process();
    if (has_come()) {
      return true;
    }
    if (const std::string why = wait_.problem(peer_); !why.empty() && !has_come() && !exception()) {
      finish(std::make_exception_ptr(std::runtime_error(why)));
    }
    return exception() != nullptr;
  }
  bool isSuccess() const override { return has_come(); }
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override {
    engine_->queue.require_process();
    const shmem_python::WithoutPython released;
    const auto come = [this] { return has_come(); };
    if (timeout == kNoTimeout || timeout.count() < 0) {
      wait_.until(come, peer_);
    } else {
      SignalWait("Window.wait_signal(rank ", peer_, engine_->group, timeout).until(come, peer_);
    }
    return true;
  }
  void synchronize() override { wait(); }
  std::vector<at::Tensor> result() override { return {}; }

 private:
  /// Acquire: pairs with signal(): what was put before it can be read. Counts wrap.
  [[nodiscard]] bool has_come() const {
    return static_cast<std::int32_t>(count_.load(std::memory_order_acquire) - target_) >= 0;
  }

  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<void> keeps_;  // the memory of the count
  const SignalCount& count_;
  const std::uint32_t target_;
  const int peer_;
  const SignalWait wait_;
};

}  // namespace

void Window::run(const char* call, std::function<std::string(std::chrono::milliseconds timeout)> body) const {
  WorkTicket ticket = engine_->tracker->begin(c10d::OpType::UNKNOWN, std::chrono::milliseconds(-1));
  const auto limit = ticket.timeout();
  const auto work = c10::make_intrusive<FunctionWork>(WorkInfo{rank_, c10d::OpType::UNKNOWN, call}, Tensors{}, engine_,
                                                      std::move(ticket), [&] { return body(limit); });
  engine_->queue.give(*work);
  work->wait();
}

void Window::tensor_register(const at::Tensor& tensor, bool owning) {
  constexpr const char* kName = "shmem:Window.tensor_register";
  const shmem_python::WithoutPython released;
  const bool again = [&] {
    const std::scoped_lock lock(mutex_);
    return area_ != nullptr;
  }();
  const GroupHandle& group = engine_->group;
  const auto size = static_cast<std::size_t>(group.size());
  const auto symmetric = tensor.defined() ? engine_->group.memories().find(tensor.data_ptr()) : std::nullopt;
  std::string problem = problem_of(tensor, symmetric.has_value());
  problem = again ? "this window has a tensor already; call tensor_deregister() before" : problem;
  auto made = std::make_shared<Area>();
  made->ranks.resize(size);
  made->claimed.resize(size);
  run(kName, [&](std::chrono::milliseconds timeout) -> std::string {
    Registered mine = problem.empty() ? described(tensor, symmetric) : Registered{};
    mine.refused = problem.empty() ? 0 : 1;
    if (std::string error = allgather(group, kName, &mine, sizeof mine, made->ranks.data(), timeout); !error.empty()) {
      return error;
    }
    std::uint64_t most = 1;
    for (std::size_t rank = 0; rank < size; ++rank) {
      const Registered& one = made->ranks[rank];
      if (one.refused != 0) {
        return std::string(kName) + ": " +
               (problem.empty() ? "rank " + std::to_string(rank) + " cannot register its tensor; its message says why"
                                : problem);
      }
      if (one.allocation != made->ranks[0].allocation) {
        return std::string(kName) + ": the tensors of rank 0 and of rank " + std::to_string(rank) +
               " are not in the same symmetric memory; register tensors of one call of shmem_torch.empty, or of none";
      }
      most = std::max(most, one.bytes);
    }
    std::string error = allocate(group, kName, size * sizeof(SignalCount), timeout, made->signals);
    if (symmetric) {
      made->data = symmetric->memory;
    } else if (error.empty()) {
      error = allocate(group, kName, most, timeout, made->data);
    }
    if (!error.empty()) {
      return error;
    }
    for (int rank = 0; rank < group.size(); ++rank) {
      if (made->data->address_of(rank) == nullptr) {  // then each rank misses one
        return std::string(kName) + ": rank " + std::to_string(rank) + " is on another node than rank " +
               std::to_string(rank_) + "; windows are for ranks of one node";
      }
    }
    if (!symmetric) {
      std::memcpy(made->data->address(), tensor.storage().data(), mine.bytes);
      auto moved = std::make_unique<MovedStorage>();
      moved->memory = made->data;
      MovedStorage* const context = moved.get();
      c10::DataPtr there(
          made->data->address(), moved.release(), [](void* of) { delete static_cast<MovedStorage*>(of); }, at::kCPU);
      context->before = tensor.storage().set_data_ptr(std::move(there));
      group.memories().add(made->data, most);  // another window of the group can use it
    }
    // No rank puts anything before all have moved theirs.
    return barrier(group, kName, timeout);
  });
  if (owning) {
    made->owned = tensor;
  }
  const std::scoped_lock lock(mutex_);
  area_ = std::move(made);
}

void Window::tensor_deregister() {
  constexpr const char* kName = "shmem:Window.tensor_deregister";
  const shmem_python::WithoutPython released;
  const auto mine = area(kName);
  run(kName, [&](std::chrono::milliseconds timeout) { return barrier(engine_->group, kName, timeout); });
  const std::scoped_lock lock(mutex_);
  area_.reset();
}

std::shared_ptr<Window::Area> Window::area(const char* call) const {
  engine_->queue.require_process();
  const std::scoped_lock lock(mutex_);
  if (!area_) {
    refuse(call, "this window has no tensor; call tensor_register() before");
  }
  return area_;
}

/// Throws if there is no such rank, or if it has ended.
std::shared_ptr<Window::Area> Window::area_with(const char* call, std::int64_t rank) const {
  auto found = area(call);
  if (rank < 0 || rank >= engine_->group.size()) {
    refuse(call,
           "there is no rank " + std::to_string(rank) + " in this group of " + std::to_string(engine_->group.size()));
  }
  if (shmemx_group_check(engine_->group.get(), static_cast<int>(rank)) != 0) {
    throw std::runtime_error(std::string(call) + ": " + shmemx_error_text());
  }
  return found;
}

WorkPointer Window::put(const at::Tensor& tensor, std::int64_t rank, std::int64_t offset, bool /*asynchronous*/,
                        const PutOptions& /*options*/) {
  constexpr const char* kName = "shmem:Window.put";
  const auto area = area_with(kName, rank);
  check_host_tensor(kName, tensor);
  if (tensor.scalar_type() != area->type_of(rank)) {
    refuse(kName, "the tensor is " + dtype_name(tensor.scalar_type()) + ", that of rank " + std::to_string(rank) +
                      " is " + dtype_name(area->type_of(rank)));
  }
  const std::int64_t room = area->of(rank).elements;
  if (offset < 0 || offset > room || tensor.numel() > room - offset) {
    refuse(kName, std::to_string(tensor.numel()) + " elements from element " + std::to_string(offset) +
                      " on exceed the " + std::to_string(room) + " of the tensor of rank " + std::to_string(rank));
  }
  const shmem_python::WithoutPython released;
  const at::Tensor from = tensor.detach().contiguous();
  std::memmove(area->tensor_of(rank) + static_cast<std::size_t>(offset) * from.element_size(), from.data_ptr(),
               bytes_of(from));
  return work_that_is_over();
}

at::Tensor Window::map_remote_tensor(std::int64_t rank) {
  const auto area = area_with("shmem:Window.map_remote_tensor", rank);
  const Registered& there = area->of(rank);
  return at::from_blob(
      area->tensor_of(rank), c10::IntArrayRef(there.sizes.data(), static_cast<std::size_t>(there.dimensions)),
      [memory = area->data](void*) mutable { memory.reset(); }, at::TensorOptions(area->type_of(rank)));
}

WorkPointer Window::signal(std::int64_t rank, bool /*asynchronous*/, const SignalOptions& /*options*/) {
  const auto area = area_with("shmem:Window.signal", rank);
  area->signals_at(rank, rank_).fetch_add(1, std::memory_order_release);  // pairs with SignalWork: puts come before it
  return work_that_is_over();
}

WorkPointer Window::wait_signal(std::int64_t rank, bool asynchronous, const WaitSignalOptions& options) {
  constexpr const char* kName = "shmem:Window.wait_signal";
  const auto area = this->area(kName);  // a rank that has ended may have sent it before
  if (rank < 0 || rank >= engine_->group.size()) {
    refuse(kName,
           "there is no rank " + std::to_string(rank) + " in this group of " + std::to_string(engine_->group.size()));
  }
  const auto timeout = options.timeout < std::chrono::milliseconds(0)
                           ? engine_->tracker->timeout()
                           : std::max(options.timeout, std::chrono::milliseconds(1));
  const std::uint32_t target = [&] {
    const std::scoped_lock lock(area->claiming);
    return ++area->claimed[static_cast<std::size_t>(rank)];
  }();
  auto work = c10::make_intrusive<SignalWork>(engine_, area, area->signals_at(rank_, rank), target,
                                              static_cast<int>(rank), timeout);
  if (!asynchronous) {
    work->wait();
  }
  return work;
}

WindowAttr Window::get_attr(std::int64_t rank) {
  static_cast<void>(area_with("shmem:Window.get_attr", rank));
  WindowAttr attributes;
  attributes.access_type = WindowAccessType::UNIFIED;
  return attributes;
}

}  // namespace shmem_torch
