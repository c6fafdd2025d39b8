// SPDX-License-Identifier: Apache-2.0
#include "python/shmem_torch/call_queue.hpp"

#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "base/signals_blocked.hpp"
#include "python/core/interpreter_exit.hpp"
#include "python/core/without_python.hpp"
#include "python/shmem_torch/group_calls.hpp"

namespace shmem_torch {
namespace {

constexpr std::chrono::milliseconds kNap{1};
constexpr int kNaps = 50;  // before the thread sleeps until it is woken

std::string failure_of(const std::exception& thrown) {
  try {
    return text_of(thrown);
  } catch (const std::bad_alloc&) {
    return "out of memory";  // so short that it needs none
  }
}

}  // namespace

struct CallQueue::State {
  std::mutex mutex;
  std::condition_variable given;  // for the thread
  std::condition_variable ended;
  QueuedWork* first = nullptr;  // of those that no thread has taken
  QueuedWork* last = nullptr;
  const QueuedWork* leaving = nullptr;  // it is over, and the thread that has made it is about to let go of it
  bool making = false;                  // a call has been taken out
  bool naps = false;
  bool hurried = false;
  bool stopping = false;
  std::thread thread;  // from the first call on

  // All are called with the mutex held.
  [[nodiscard]] bool can_make() const { return !making && first != nullptr; }
  [[nodiscard]] bool is_over(const QueuedWork& call) const { return call.is_over_ && leaving != &call; }
  void flush() {
    if (!std::exchange(hurried, true)) {
      given.notify_one();
    }
  }
  /// False if there is no thread yet and none can be started now.
  static bool start_thread(const std::shared_ptr<State>& state);
  void add(QueuedWork& call);
  QueuedWork& take_first(std::unique_lock<std::mutex>& lock);
  void end_first(std::unique_lock<std::mutex>& lock, QueuedWork& call, std::string error);  // with it released
  void rest(std::unique_lock<std::mutex>& lock);
  static void serve(const std::shared_ptr<State>& state);
};

bool CallQueue::State::start_thread(const std::shared_ptr<State>& state) {
  if (state->thread.joinable()) {
    return true;
  }
  try {
    const base::SignalsBlocked blocked;
    state->thread = std::thread([state] { serve(state); });
    state->naps = true;
    return true;
  } catch (const std::system_error&) {  // a limit on the number of threads, for instance
    return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void CallQueue::State::add(QueuedWork& call) {
  call.self_ = c10::intrusive_ptr<QueuedWork>::unsafe_reclaim_from_nonowning(&call);
  (first == nullptr ? first : last->next_) = &call;
  last = &call;
}

/// The caller must make it, and end it, with the mutex released.
QueuedWork& CallQueue::State::take_first(std::unique_lock<std::mutex>& lock) {
  QueuedWork& call = *std::exchange(first, first->next_);
  making = true;
  lock.unlock();
  return call;
}

/// What the call has kept goes now, before a waiter returns, which may then expect its group to end. With it the queue
/// may go: not under its mutex.
void CallQueue::State::end_first(std::unique_lock<std::mutex>& lock, QueuedWork& call, std::string error) {
  {
    const shmem_python::PythonWork work;
    if (work.may_run()) {
      end(call, error);
    }
    lock.lock();
    call.error_ = std::move(error);
    call.has_ended_ = work.may_run();
    call.is_over_ = true;
    leaving = &call;
    lock.unlock();
    if (work.may_run()) {
      const auto self = std::move(call.self_);  // it may be the last
    }
  }
  lock.lock();
  leaving = nullptr;
  making = false;
  ended.notify_all();
}

/// Until there is a call that no thread waits for.
void CallQueue::State::rest(std::unique_lock<std::mutex>& lock) {
  naps = true;
  for (int nap = 0; nap < kNaps && !stopping && !hurried; ++nap) {
    const bool was_idle = first == nullptr;
    given.wait_for(lock, kNap);
    if (!was_idle && can_make()) {
      break;  // no waiter has made it during a whole nap
    }
  }
  naps = false;
  while (!can_make() && !stopping) {
    hurried = false;
    if (making) {
      ended.wait(lock);
    } else {
      given.wait(lock);
    }
  }
}

void CallQueue::State::serve(const std::shared_ptr<State>& state) {
  ::pthread_setname_np(::pthread_self(), "shmem-torch");
  std::unique_lock lock(state->mutex);
  while (!state->stopping || state->first != nullptr) {
    state->rest(lock);
    while (state->can_make()) {
      QueuedWork& next = state->take_first(lock);
      state->end_first(lock, next, next.make());
    }
    state->hurried = false;
    if (state->stopping && state->making) {
      state->ended.wait(lock);
    }
  }
}

CallQueue::CallQueue() : state_(std::make_shared<State>()), owner_(::getpid()) {}

CallQueue::~CallQueue() {
  std::thread thread;
  if (owner_ != ::getpid()) {
    // The mutex may be held by a thread that this process does not have.
    if (state_->thread.joinable()) {
      state_->thread.detach();
    }
    return;
  }
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stopping = true;
    thread.swap(state_->thread);
  }
  state_->given.notify_all();
  if (thread.get_id() == std::this_thread::get_id()) {
    thread.detach();
  } else if (thread.joinable()) {
    const shmem_python::WithoutPython released;
    thread.join();
  }
}

void CallQueue::end(QueuedWork& call, const std::string& error) {
  try {
    call.end(error);
  } catch (const std::exception&) {
    // An exception of a callback, or no memory for one: perhaps on the queue's thread, where it would be the end.
  }
}

void CallQueue::require_process() const {
  shmem_python::stay_if_interpreter_exits();
  if (owner_ != ::getpid()) {
    throw std::runtime_error("shmem_torch: this process was forked from a rank (pid " + std::to_string(owner_) +
                             ") and is no rank itself: make the call there, or call destroy_process_group() and make "
                             "a new group here");
  }
}

void CallQueue::give(QueuedWork& call) {
  require_process();
  const auto state = state_;  // the call may drop the queue
  std::unique_lock lock(state->mutex);
  const bool had_thread = state->thread.joinable();
  const bool has_thread = State::start_thread(state);
  state->add(call);
  if (!has_thread) {
    lock.unlock();
    wait(call);  // since no other thread might make it
  } else if (had_thread && !state->naps) {
    state->given.notify_one();
  }
}

void CallQueue::flush() {
  require_process();
  const std::scoped_lock lock(state_->mutex);
  state_->flush();
}

void CallQueue::wait(QueuedWork& call) {
  require_process();
  const auto state = state_;
  std::unique_lock lock(state->mutex);
  while (!state->is_over(call)) {
    if (state->can_make()) {
      QueuedWork& next = state->take_first(lock);
      state->end_first(lock, next, next.make());
    } else {
      state->ended.wait(lock);
    }
  }
  lock.unlock();
  shmem_python::stay_if_interpreter_exits();
  if (!std::exchange(call.has_ended_, true)) {
    end(call, call.error_);
  }
}

bool CallQueue::wait_for(QueuedWork& call, std::chrono::milliseconds limit) {
  require_process();
  const auto state = state_;
  std::unique_lock lock(state->mutex);
  state->flush();
  const bool over = state->ended.wait_for(lock, limit, [&] { return state->is_over(call); });
  lock.unlock();
  shmem_python::stay_if_interpreter_exits();
  if (over && !std::exchange(call.has_ended_, true)) {
    end(call, call.error_);
  }
  return over;
}

bool CallQueue::is_over(const QueuedWork& call) {
  require_process();
  const std::scoped_lock lock(state_->mutex);
  if (!call.is_over_) {
    state_->flush();
  }
  return state_->is_over(call);
}

std::string CollectiveWork::make() try {
  const int error = shmemx_group_run_signed(group().get(), &call_->to_make(), call_->signature());
  return told(call_->finish(group(), group().outcome(error)));
} catch (const std::exception& thrown) {
  return failure_of(thrown);
}

std::string FunctionWork::make() try {
  std::string error = make_();
  return told(std::move(error));
} catch (const std::exception& thrown) {
  return failure_of(thrown);
}

void QueuedWork::end(const std::string& error) {
  drop();
  finish(exception_of(error));
  settle();
  ticket_.end();
}

/// The future, if there is one, once the call is over.
void QueuedWork::settle() {
  c10::intrusive_ptr<c10::ivalue::Future> future;
  std::exception_ptr failure;
  {
    const std::scoped_lock lock(mutex_);
    if (completed_) {
      future.swap(future_);
      failure = exception_;
    }
  }
  if (future) {
    complete(*future, result(), failure);
  }
}

bool QueuedWork::isSuccess() const {
  const std::scoped_lock lock(mutex_);
  return exception_ == nullptr;
}

bool QueuedWork::wait(std::chrono::milliseconds timeout) {
  if (timeout == kNoTimeout || timeout.count() < 0) {
    engine_->queue.wait(*this);
  } else if (!engine_->queue.wait_for(*this, timeout)) {
    throw_timeout(title_, timeout, engine_->group.missing());
  }
  if (const std::exception_ptr failure = exception(); failure) {
    std::rethrow_exception(failure);
  }
  return true;
}

c10::intrusive_ptr<c10::ivalue::Future> QueuedWork::getFuture() {
  engine_->queue.require_process();
  auto future = future_of_tensors();
  {
    const std::scoped_lock lock(mutex_);
    if (future_) {
      return future_;
    }
    future_ = future;
  }
  settle();
  engine_->queue.flush();  // no thread waits by wait()
  return future;
}

std::exception_ptr exception_of(const std::string& error) {
  try {
    return error.empty() ? nullptr : std::make_exception_ptr(std::runtime_error(error));
  } catch (const std::bad_alloc&) {
    return std::current_exception();
  }
}

void throw_timeout(const char* title, std::chrono::milliseconds timeout, const std::string& awaited) {
  throw std::runtime_error(std::string(title) + ": not over within the timeout of " + std::to_string(timeout.count()) +
                           " ms that was given to wait()" + (awaited.empty() ? "" : ": " + awaited));
}

void complete(c10::ivalue::Future& future, std::vector<at::Tensor> results, const std::exception_ptr& failure) {
  if (failure) {
    future.setError(failure);
  } else {
    future.markCompleted(at::IValue(std::move(results)));
  }
}

c10::intrusive_ptr<c10::ivalue::Future> future_of_tensors() {
  return c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
}

}  // namespace shmem_torch
