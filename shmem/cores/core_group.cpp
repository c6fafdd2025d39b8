// SPDX-License-Identifier: Apache-2.0
#include "shmem/cores/core_group.hpp"

#include <pthread.h>
#include <signal.h>

#include <string>

namespace shmem {
namespace {

constexpr std::uint64_t kFailed = 1;
constexpr std::uint64_t kOneMeeting = 2;

/// Waits until word.value == value without ever waking up for nothing: here nobody can die alone. The orders are those
/// of publish() and wait_on().
void wait_for(SyncWord& word, const WaitPolicy& policy, std::uint64_t value) {
  const auto is_there = [&] { return word.value.load(std::memory_order_acquire) == value; };
  if (spin_until(policy, is_there)) {
    return;
  }
  word.sleepers.fetch_add(1, std::memory_order_seq_cst);
  for (std::uint64_t seen = word.value.load(std::memory_order_seq_cst); seen != value;
       seen = word.value.load(std::memory_order_seq_cst)) {
    futex_sleep(word.value, seen, std::chrono::hours{1});
  }
  word.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

/// Signals are for the threads of the application; a thread inherits the mask of its maker.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

int ThreadCore::count() const {
  return group_.cores_;
}

Waiting<CoreCheck> ThreadCore::begin_wait() {
  return {group_.policy_, check_};
}

std::errc CoreCheck::operator()() const {
  return group_.check();
}

Result<std::unique_ptr<CoreGroup>> CoreGroup::create(int cores, const WaitPolicy& policy) {
  if (cores < 1) {
    return shmem::fail(std::errc::invalid_argument, "shmem: a core group of " + std::to_string(cores) +
                                                        " cores was asked for; there must be one at least");
  }
  std::unique_ptr<CoreGroup> group{new CoreGroup{cores, policy}};
  try {
    group->start_threads();
  } catch (const std::system_error& error) {
    return shmem::fail(std::errc{error.code().value()},
                       "shmem: cannot make the threads of a group of " + std::to_string(cores) + " cores (" +
                           std::to_string(group->threads_.size() + 1) + " are there): " + error.code().message() +
                           "; ask for fewer cores or raise `ulimit -u`");
  }
  return group;
}

void CoreGroup::start_threads() {
  const SignalsBlocked blocked;
  threads_.reserve(static_cast<std::size_t>(cores_) - 1);
  for (int index = 1; index < cores_; ++index) {
    threads_.emplace_back([this, index] { serve(index); });
  }
}

CoreGroup::~CoreGroup() {
  ending_ = true;
  publish(started_, ++runs_);
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

std::errc CoreGroup::run(const Kernel& kernel, const Check& check) {
  kernel_ = &kernel;
  check_ = &check;
  exception_ = nullptr;
  // Relaxed: all threads sleep, or are on their way there, and nobody but this one looks at these; started_ publishes
  // them.
  error_.store(0, std::memory_order_relaxed);
  arrived_.store(0, std::memory_order_relaxed);
  meeting_.value.store(0, std::memory_order_relaxed);
  publish(started_, ++runs_);
  run_core(0);
  wait_for(ended_, policy_, runs_ * threads_.size());
  if (exception_) {
    std::rethrow_exception(exception_);
  }
  // Relaxed: ordered after run_core() of all by ended_.
  return std::errc{error_.load(std::memory_order_relaxed)};
}

void CoreGroup::serve(int index) {
  for (std::uint64_t run = 1;; ++run) {
    wait_for(started_, policy_, run);
    if (ending_) {
      return;
    }
    run_core(index);
    // Release: what this core did is visible to run() once it has seen all of them end.
    ended_.value.fetch_add(1, std::memory_order_seq_cst);
    wake_sleepers(ended_);
  }
}

void CoreGroup::run_core(int index) {
  ThreadCore core{*this, index};
  std::errc error{};
  std::exception_ptr thrown;
  try {
    error = (*kernel_)(core);
  } catch (...) {
    thrown = std::current_exception();
    error = std::errc::state_not_recoverable;
  }
  if (error == std::errc{}) {
    return;
  }
  int none = 0;
  // Relaxed: the store of exception_ is for run(), which is ordered after it by ended_.
  if (error_.compare_exchange_strong(none, static_cast<int>(error), std::memory_order_relaxed)) {
    exception_ = thrown;
  }
  // Whoever waits for this core at a meeting waits in vain. Pairs with come() and outcome().
  meeting_.value.fetch_or(kFailed, std::memory_order_seq_cst);
  wake_sleepers(meeting_);
}

CoreGroup::Place CoreGroup::come() {
  // The meeting cannot end before this core has come, so this is the number of it. Acquire: pairs with the core that
  // ended the last one, below, and with one that has failed.
  const std::uint64_t before = meeting_.value.load(std::memory_order_acquire);
  if ((before & kFailed) != 0) {
    return {before, std::errc::operation_canceled, false};
  }
  // Each core releases what it did before the meeting; the last one acquires it all and passes it on through meeting_.
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < cores_) {
    return {before, {}, false};
  }
  arrived_.store(0, std::memory_order_relaxed);  // for the next meeting; meeting_ publishes it
  meeting_.value.fetch_add(kOneMeeting, std::memory_order_seq_cst);
  wake_sleepers(meeting_);
  return {before, {}, true};
}

std::errc CoreGroup::outcome(std::uint64_t before) const {
  // Acquire: pairs with the core that ended the meeting, in come().
  const bool held = (meeting_.value.load(std::memory_order_acquire) | kFailed) != (before | kFailed);
  return held ? std::errc{} : std::errc::operation_canceled;
}

}  // namespace shmem
