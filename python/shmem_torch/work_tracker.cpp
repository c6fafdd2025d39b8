// SPDX-License-Identifier: Apache-2.0
#include "python/shmem_torch/work_tracker.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <thread>

#include "python/core/interpreter_exit.hpp"

namespace shmem_torch {
namespace {

bool is_message(c10d::OpType type) {
  return type == c10d::OpType::SEND || type == c10d::OpType::RECV || type == c10d::OpType::RECVANYSOURCE;
}

ErrorType type_of(int error) {
  if (error == -ETIMEDOUT) {
    return ErrorType::TIMEOUT;
  }
  return error == -ECANCELED ? ErrorType::REMOTE_ERROR : ErrorType::COMM_ERROR;
}

/// Of the program: an exception would end in a thread of libshmem.
template <typename Hook, typename... Arguments>
void call(const Hook& hook, Arguments&&... arguments) {
  const shmem_python::PythonWork work;
  if (!work.may_run()) {
    return;
  }
  try {
    hook(std::forward<Arguments>(arguments)...);
  } catch (const std::exception& error) {
    TORCH_WARN("shmem_torch: a hook has failed: ", error.what());
  }
}

}  // namespace

void WorkTracker::extend_timeout(std::chrono::milliseconds more) {
  const std::scoped_lock lock(mutex_);
  extensions_.push_back({more, std::nullopt});
  is_extended_.store(true, std::memory_order_release);  // pairs with begin()
}

WorkTicket WorkTracker::begin(c10d::OpType type, std::chrono::milliseconds given) {
  WorkTicket ticket(*this, type);
  ticket.timeout_ = given < std::chrono::milliseconds(0) ? timeout() : std::max(given, std::chrono::milliseconds(1));
  ticket.begun_ = begun_.fetch_add(1, std::memory_order_relaxed);
  ticket.number_ = is_message(type) ? collective_calls() : calls_.fetch_add(1, std::memory_order_relaxed) + 1;
  pending_.fetch_add(1, std::memory_order_relaxed);
  if (measures_.load(std::memory_order_relaxed)) {
    ticket.since_ = WorkClock::now();
  }
  if (is_extended_.load(std::memory_order_acquire)) {  // pairs with extend_timeout()
    const std::scoped_lock lock(mutex_);
    for (Extension& extension : extensions_) {
      ticket.timeout_ += extension.more;
      if (!extension.first) {
        extension.first = ticket.begun_;
        ticket.ends_extension_ = true;
      }
    }
  }
  return ticket;
}

void WorkTicket::end() {
  if (WorkTracker* const tracker = std::exchange(tracker_, nullptr); tracker != nullptr) {
    tracker->end(*this);
  }
}

void WorkTracker::end(const WorkTicket& ticket) {
  if (ticket.ends_extension_) {
    const std::scoped_lock lock(mutex_);
    extensions_.erase(std::remove_if(extensions_.begin(), extensions_.end(),
                                     [&](const Extension& one) { return one.first == ticket.begun_; }),
                      extensions_.end());
    is_extended_.store(!extensions_.empty(), std::memory_order_release);
  }
  if (measures_.load(std::memory_order_relaxed)) {
    std::shared_ptr<const CompletionHook> hook;
    {
      const std::scoped_lock lock(mutex_);
      hook = completion_hook_;
    }
    if (hook) {
      const auto now = WorkClock::now();
      const auto since = ticket.since_ == WorkClock::time_point{} ? now : ticket.since_;
      call(*hook, std::make_shared<EndedWork>(ticket.type_, ticket.number_, since, now, now - since));
    }
  }
  pending_.fetch_sub(1, std::memory_order_release);  // pairs with wait_for_pending(): the hook has been called
}

void WorkTracker::wait_for_pending() const {
  constexpr std::chrono::microseconds kPause{200};
  while (pending_.load(std::memory_order_acquire) != 0) {  // pairs with end()
    std::this_thread::sleep_for(kPause);
  }
}

void WorkTracker::begin_again() {
  calls_.store(0, std::memory_order_relaxed);
  error_.store(ErrorType::SUCCESS, std::memory_order_release);
}

// Hooks of Python take its lock when they go: not under the mutex.

void WorkTracker::set_completion_hook(CompletionHook hook) {
  auto kept = std::make_shared<const CompletionHook>(std::move(hook));
  {
    const std::scoped_lock lock(mutex_);
    completion_hook_.swap(kept);
  }
  measure_times();
}

void WorkTracker::add_abort_hook(std::int64_t id, AbortHook hook) {
  auto kept = std::make_shared<const AbortHook>(std::move(hook));
  const std::scoped_lock lock(mutex_);
  abort_hooks_[id].swap(kept);
}

void WorkTracker::remove_abort_hook(std::int64_t id) {
  std::shared_ptr<const AbortHook> gone;
  const std::scoped_lock lock(mutex_);
  if (const auto found = abort_hooks_.find(id); found != abort_hooks_.end()) {
    gone.swap(found->second);
    abort_hooks_.erase(found);
  }
}

void WorkTracker::fail(int error) {
  auto healthy = ErrorType::SUCCESS;
  if (!error_.compare_exchange_strong(healthy, type_of(error), std::memory_order_acq_rel)) {
    return;  // the hooks have been called
  }
  std::map<std::int64_t, std::shared_ptr<const AbortHook>> hooks;
  {
    const std::scoped_lock lock(mutex_);
    hooks = abort_hooks_;
  }
  for (const auto& [id, hook] : hooks) {
    call(*hook);
  }
}

}  // namespace shmem_torch
