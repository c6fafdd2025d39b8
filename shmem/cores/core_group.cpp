// SPDX-License-Identifier: Apache-2.0
#include "shmem/cores/core_group.hpp"

#include <fmt/format.h>

#include <string>

namespace shmem {
namespace {

constexpr std::uint64_t kFailed = 1;
constexpr std::uint64_t kOneBarrier = 2;

/// Waits until word.value == value without timed wake-ups: no thread can die alone here. The memory orders are those of
/// publish() and wait_on().
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

bool& core_of_kernel() {
  static thread_local bool is_one = false;
  return is_one;
}

}  // namespace

bool CoreGroup::is_core() {
  return core_of_kernel();
}

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
    return shmem::fail(std::errc::invalid_argument,
                       fmt::format("shmem: a core group of {} cores was asked for; there must be one at least", cores));
  }
  std::unique_ptr<CoreGroup> group{new CoreGroup{cores, policy}};
  group->threads_.reserve(static_cast<std::size_t>(cores) - 1);
  for (int index = 1; index < cores; ++index) {
    auto thread = base::HelperThread::start([&here = *group, index] { here.serve(index); });
    if (!thread) {
      const auto why = thread.error().code;
      return shmem::fail(why, fmt::format("shmem: cannot make the threads of a group of {} cores ({} are there): {}; "
                                          "ask for fewer cores or raise `ulimit -u`",
                                          cores, index, std::make_error_code(why).message()));
    }
    group->threads_.push_back(*std::move(thread));
  }
  return group;
}

CoreGroup::~CoreGroup() {
  ending_ = true;
  publish(started_, ++runs_);
  threads_.clear();  // now: they use what ends before it
}

std::errc CoreGroup::run(const Kernel& kernel, const Check& check) {
  kernel_ = &kernel;
  check_ = &check;
  exception_ = nullptr;
  // Relaxed: all threads sleep, or are about to, and only this one reads these; started_ publishes them.
  error_.store(0, std::memory_order_relaxed);
  arrived_.store(0, std::memory_order_relaxed);
  barrier_.value.store(0, std::memory_order_relaxed);
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
    // Release: this core's work is visible to run() once it has seen all cores end.
    ended_.value.fetch_add(1, std::memory_order_seq_cst);
    wake_sleepers(ended_);
  }
}

void CoreGroup::run_core(int index) {
  ThreadCore core{*this, index};
  std::errc error{};
  std::exception_ptr thrown;
  core_of_kernel() = true;
  try {
    error = (*kernel_)(core);
  } catch (...) {
    thrown = std::current_exception();
    error = std::errc::state_not_recoverable;
  }
  core_of_kernel() = false;
  if (error == std::errc{}) {
    return;
  }
  int none = 0;
  // Relaxed: the store to exception_ is for run(), which ended_ orders after it.
  if (error_.compare_exchange_strong(none, static_cast<int>(error), std::memory_order_relaxed)) {
    exception_ = thrown;
  }
  // Cores that wait for this one at a barrier must stop waiting. Pairs with arrive() and outcome().
  barrier_.value.fetch_or(kFailed, std::memory_order_seq_cst);
  wake_sleepers(barrier_);
}

CoreGroup::CoreArrival CoreGroup::arrive() {
  // The barrier cannot end before this core arrives, so this is its number. Acquire: pairs with the core that ended the
  // previous one, below, and with one that has failed.
  const std::uint64_t before = barrier_.value.load(std::memory_order_acquire);
  if ((before & kFailed) != 0) {
    return {before, std::errc::operation_canceled, false};
  }
  // Each core releases its work before the barrier; the last one acquires all of it and passes it on through barrier_.
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < cores_) {
    return {before, {}, false};
  }
  arrived_.store(0, std::memory_order_relaxed);  // for the next barrier; barrier_ publishes it
  barrier_.value.fetch_add(kOneBarrier, std::memory_order_seq_cst);
  wake_sleepers(barrier_);
  return {before, {}, true};
}

std::errc CoreGroup::outcome(std::uint64_t before) const {
  // Acquire: pairs with the core that ended the barrier, in arrive().
  const bool passed = (barrier_.value.load(std::memory_order_acquire) | kFailed) != (before | kFailed);
  return passed ? std::errc{} : std::errc::operation_canceled;
}

}  // namespace shmem
