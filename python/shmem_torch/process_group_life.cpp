// SPDX-License-Identifier: Apache-2.0
// The life of a process group: its begin, timeouts, hooks and end, and what belongs to it.
#include <algorithm>
#include <random>
#include <stdexcept>

#include "python/core/interpreter_exit.hpp"
#include "python/core/without_python.hpp"
#include "python/shmem_torch/arguments.hpp"
#include "python/shmem_torch/process_group.hpp"
#include "python/shmem_torch/window.hpp"

namespace shmem_torch {

Store store_of(const c10::intrusive_ptr<c10d::Store>& store) {
  return {[store](const std::string& key, const std::vector<std::uint8_t>& value) { store->set(key, value); },
          [store](const std::string& key) { return store->get(key); },
          [store](const std::string& key) { return store->check({key}); }, store->getTimeout()};
}

namespace {

constexpr std::chrono::milliseconds kGroupsOwn{-1};  // its timeout

std::string random_token() {
  std::random_device source;
  return std::to_string((std::uint64_t{source()} << 32U) | source());
}

std::uint64_t stable_rank_of(const GroupPlace& place) {
  const auto rank = static_cast<std::size_t>(place.rank);
  return rank < place.ranks.size() ? place.ranks[rank] : rank;
}

}  // namespace

ProcessGroupShmem::ProcessGroupShmem(c10::intrusive_ptr<c10d::Store> store, const GroupPlace& place)
    : BackendBase(place.rank, place.size),
      tracker_(std::make_shared<WorkTracker>(at_least_one(place.timeout))),
      options_(options_of(place.timeout, place.name, place.ranks)),
      store_(std::move(store)),
      stable_rank_(stable_rank_of(place)),
      token_(random_token()),
      members_(place.ranks) {
  if (place.waits_for_reconfigure) {
    why_none_ = "it has no members yet: call reconfigure() with the handles of all";
  } else {
    engine_ = std::make_shared<Engine>(tracker_, store_of(store_), place.rank, place.size);
  }
  shmem_python::stay_if_interpreter_exits();
}

std::shared_ptr<Engine> ProcessGroupShmem::engine_now() const {
  const std::scoped_lock lock(engine_mutex_);
  return engine_;
}

std::shared_ptr<Engine> ProcessGroupShmem::engine() const {
  const std::scoped_lock lock(engine_mutex_);
  if (!engine_) {
    throw std::runtime_error("shmem_torch: this process group cannot be used: " + why_none_);
  }
  return engine_;
}

/// From now on this rank is in no group, for that reason.
std::shared_ptr<Engine> ProcessGroupShmem::take_engine(std::string why) {
  const std::scoped_lock lock(engine_mutex_);
  why_none_ = std::move(why);
  return std::exchange(engine_, nullptr);
}

void ProcessGroupShmem::setTimeout(std::chrono::milliseconds timeout) {
  options_->timeout = timeout;
  tracker_->set_timeout(at_least_one(timeout));
}

void ProcessGroupShmem::registerOnCompletionHook(CompletionHook&& hook) {
  note_completion_hook(hook);
  tracker_->set_completion_hook(std::move(hook));
}

void ProcessGroupShmem::waitForPendingWorks() {
  const shmem_python::WithoutPython released;
  if (const auto engine = engine_now(); engine) {
    engine->queue.flush();  // no thread waits for them
    tracker_->wait_for_pending();
  }
}

void ProcessGroupShmem::abort() {
  const shmem_python::WithoutPython released;
  tracker_->fail(-ECONNABORTED);
  if (const auto engine = engine_now(); engine) {
    engine->group.abort("abort() of the process group was called");
    engine->queue.flush();  // to end the calls that are left
  }
}

void ProcessGroupShmem::shutdown() {
  const shmem_python::WithoutPython released;
  take_engine("it was shut down").reset();
}

at::Tensor ProcessGroupShmem::empty(const std::vector<std::int64_t>& sizes, at::ScalarType type) {
  constexpr const char* kName = "shmem_torch.empty";
  std::size_t bytes = 0;
  try {
    bytes = bytes_of(kName, sizes, type);
  } catch (...) {
    tell_refused(kName, kGroupsOwn);
    throw;
  }
  // In the order of the other calls of the group.
  auto memory = std::make_shared<std::shared_ptr<GroupMemory>>();
  const auto make = [memory, bytes](const GroupHandle& group, std::chrono::milliseconds timeout) {
    std::string error = allocate(group, kName, std::max<std::size_t>(bytes, 1), timeout, *memory);
    if (error.empty()) {
      group.memories().add(*memory, bytes);
    }
    return error;
  };
  give_function(c10d::OpType::UNKNOWN, kName, {}, kGroupsOwn, make)->wait();
  void* const address = (*memory)->address();
  return at::from_blob(
      address, sizes, [owner = *memory](void*) mutable { owner.reset(); }, at::TensorOptions(type));
}

shmemx_group_statistics_t ProcessGroupShmem::statistics() const {
  shmemx_group_statistics_t statistics{};
  const auto engine = this->engine();
  engine->queue.require_process();
  shmemx_group_statistics(engine->group.get(), &statistics);
  return statistics;
}

c10::intrusive_ptr<WindowBase> ProcessGroupShmem::new_window(const std::optional<at::Tensor>& tensor) {
  auto window = c10::make_intrusive<Window>(engine(), rank_);
  if (tensor) {
    window->tensor_register(*tensor, true);
  }
  return window;
}

}  // namespace shmem_torch
