// SPDX-License-Identifier: Apache-2.0
#include "python/shmem_torch/call_queue.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "python/shmem_torch/group_calls.hpp"
#include "python/shmem_torch/interpreter_exit.hpp"
#include "python/shmem_torch/without_python.hpp"

namespace shmem_torch {
namespace {

constexpr std::chrono::milliseconds kNap{1};
constexpr int kNaps = 50;  // before the thread sleeps until it is woken

std::string outcome_of(const QueuedCall& call) {
  try {
    return call.make();
  } catch (const std::exception& error) {
    try {
      return text_of(error);
    } catch (const std::bad_alloc&) {
      return "out of memory";  // so short that it needs none
    }
  }
}

/// Signals are for the program's threads: those that it starts while this exists block all of them.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;
  ~WithoutSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

struct CallQueue::State {
  std::mutex mutex;
  std::condition_variable given;  // for the thread
  std::condition_variable ended;
  std::deque<CallPointer> calls;
  bool making = false;  // a call has been taken out
  bool naps = false;
  bool hurried = false;
  bool stopping = false;
  std::thread thread;  // from the first call on

  // All are called with the mutex held.
  [[nodiscard]] bool can_make() const { return !making && !calls.empty(); }
  void hurry() {
    if (!std::exchange(hurried, true)) {
      given.notify_one();
    }
  }
  /// False if there is no thread yet and none can be started now.
  static bool start_thread(const std::shared_ptr<State>& state);
  void make_first(std::unique_lock<std::mutex>& lock);
  void finish(std::unique_lock<std::mutex>& lock, const CallPointer& call);
  void rest(std::unique_lock<std::mutex>& lock);
  static void serve(const std::shared_ptr<State>& state);
};

bool CallQueue::State::start_thread(const std::shared_ptr<State>& state) {
  if (state->thread.joinable()) {
    return true;
  }
  try {
    const WithoutSignals blocked;
    state->thread = std::thread([state] { serve(state); });
    state->naps = true;
    return true;
  } catch (const std::system_error&) {  // a limit on the number of threads, for instance
    return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void CallQueue::State::make_first(std::unique_lock<std::mutex>& lock) {
  const CallPointer call = std::move(calls.front());
  calls.pop_front();
  making = true;
  lock.unlock();
  call->error = outcome_of(*call);
  if (const PythonWork work; work.may_run()) {
    tell_end(*call);
  }
  // What the call has kept has gone now, before a waiter returns, which may then expect its group to end. With it the
  // queue may go: not under its mutex.
  lock.lock();
  making = false;
  call->over = true;
  ended.notify_all();
}

/// Makes calls until this one is over.
void CallQueue::State::finish(std::unique_lock<std::mutex>& lock, const CallPointer& call) {
  while (!call->over) {
    if (can_make()) {
      make_first(lock);
    } else {
      ended.wait(lock);
    }
  }
}

/// Until there is a call that no thread waits for.
void CallQueue::State::rest(std::unique_lock<std::mutex>& lock) {
  naps = true;
  for (int nap = 0; nap < kNaps && !stopping && !hurried; ++nap) {
    const bool was_idle = calls.empty();
    given.wait_for(lock, kNap);
    if (!was_idle && can_make()) {
      break;  // nobody has made it during a whole nap
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
  while (!state->stopping || !state->calls.empty()) {
    state->rest(lock);
    while (state->can_make()) {
      state->make_first(lock);
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
    const WithoutPython released;
    thread.join();
  }
}

/// The call is over, or about to be. Lets go of what it has kept.
void CallQueue::tell_end(QueuedCall& call) {
  call.make = nullptr;
  if (auto tell = std::exchange(call.ended, nullptr); tell) {
    try {
      tell(call.error);
    } catch (const std::exception&) {
      // An exception of a callback, or no memory for one: perhaps on the queue's thread, where it would be the end.
    }
  }
}

void CallQueue::require_process() const {
  stay_if_interpreter_exits();
  if (owner_ != ::getpid()) {
    throw std::runtime_error("shmem_torch: this process was forked from a rank (pid " + std::to_string(owner_) +
                             ") and is no rank itself: make the call there, or call destroy_process_group() and make "
                             "a new group here");
  }
}

void CallQueue::give(const CallPointer& call) {
  require_process();
  const auto state = state_;  // the call may drop the queue
  std::unique_lock lock(state->mutex);
  const bool had_thread = state->thread.joinable();
  const bool has_thread = State::start_thread(state);
  state->calls.push_back(call);  // last of what can fail: a call that is not in the queue is never made
  if (!has_thread) {
    state->finish(lock, call);  // since no other thread might
  } else if (had_thread && !state->naps) {
    state->given.notify_one();
  }
}

void CallQueue::hurry() {
  require_process();
  const std::scoped_lock lock(state_->mutex);
  state_->hurry();
}

void CallQueue::wait(const CallPointer& call) {
  require_process();
  const auto state = state_;
  std::unique_lock lock(state->mutex);
  state->finish(lock, call);
  lock.unlock();
  stay_if_interpreter_exits();
  if (call->ended) {  // the queue's thread has left it out
    tell_end(*call);
  }
}

bool CallQueue::wait_for(const CallPointer& call, std::chrono::milliseconds limit) {
  require_process();
  std::unique_lock lock(state_->mutex);
  state_->hurry();
  const bool over = state_->ended.wait_for(lock, limit, [&call] { return call->over; });
  lock.unlock();
  stay_if_interpreter_exits();
  if (over && call->ended) {
    tell_end(*call);
  }
  return over;
}

bool CallQueue::is_over(const CallPointer& call) {
  require_process();
  const std::scoped_lock lock(state_->mutex);
  if (!call->over) {
    state_->hurry();
  }
  return call->over;
}

}  // namespace shmem_torch
