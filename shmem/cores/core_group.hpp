// SPDX-License-Identifier: Apache-2.0
// The vector cores of a PE as threads: a group runs a kernel on all of them at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <system_error>
#include <vector>

#include "base/helper_thread.hpp"
#include "shmem/cores/core.hpp"
#include "shmem/result.hpp"

namespace shmem {

class CoreGroup;

/// The Check of a core's waits.
class CoreCheck {
 public:
  explicit CoreCheck(const CoreGroup& group) : group_(group) {}
  std::errc operator()() const;

 private:
  const CoreGroup& group_;
};

/// The same, and `watch` for this one wait.
template <std::invocable Watch>
class WatchedCheck {
 public:
  WatchedCheck(const CoreCheck& core, Watch& watch) : core_(core), watch_(watch) {}
  std::errc operator()() const {
    const std::errc error = core_();
    return error != std::errc{} ? error : watch_();
  }

 private:
  const CoreCheck& core_;
  Watch& watch_;
};

/// One core of a running kernel; satisfies Core. Used by that core's thread only, while the kernel runs.
///
/// Waits end with the error of the run's Check, or with operation_canceled once another core's kernel has failed. A
/// kernel that gets an error returns it.
class ThreadCore {
 public:
  [[nodiscard]] int index() const { return index_; }
  [[nodiscard]] int count() const;
  // Acquire: pairs with store() and fetch_add() of other cores.
  static std::uint64_t load(const SyncWord& word) { return word.value.load(std::memory_order_acquire); }
  static void store(SyncWord& word, std::uint64_t value) { publish(word, value); }
  // Release: this core's earlier stores are visible to the last one to arrive, which acquires and passes them on.
  static std::uint64_t fetch_add(SyncWord& word, std::uint64_t value) {
    return word.value.fetch_add(value, std::memory_order_acq_rel);
  }
  Waiting<CoreCheck> begin_wait();
  // Processors that run Linux keep their caches coherent, and store() is a release.
  static void fence() {}
  static void dcci(const void* /*address*/) {}
  static void dcci_all() {}
  std::errc sync() { return sync(check_); }
  /// The same; `check` ends it instead of the run's Check.
  template <std::invocable Check>
  std::errc sync(const Check& check);

  /// For waits for anything but a SyncWord: the policy and the Check.
  [[nodiscard]] const WaitPolicy& policy() const;
  [[nodiscard]] const CoreCheck& check() const { return check_; }

 private:
  friend class CoreGroup;
  ThreadCore(CoreGroup& group, int index) : group_(group), index_(index), check_(group) {}

  CoreGroup& group_;
  int index_;
  CoreCheck check_;
};

/// A fixed number of cores: the thread that calls run() is core 0, the others are threads of the group, which sleep
/// between kernels without waking up. They take no signals. run() is called by one thread at a time. Unusable after
/// fork().
class CoreGroup {
 public:
  using Kernel = std::function<std::errc(ThreadCore&)>;
  /// Called by waiting cores, several at once: errc{} to continue.
  using Check = std::function<std::errc()>;

  /// `policy` is for as many threads as there are cores in all PEs that wait for each other on this machine. Errors:
  /// invalid_argument, or why a thread could not be created.
  static Result<std::unique_ptr<CoreGroup>> create(int cores, const WaitPolicy& policy);
  CoreGroup(const CoreGroup&) = delete;
  CoreGroup& operator=(const CoreGroup&) = delete;
  ~CoreGroup();

  [[nodiscard]] int count() const { return cores_; }
  /// The calling thread is a core of a running kernel.
  static bool is_core();

  /// Runs `kernel` on every core and returns when all have ended: errc{} or the first error that any of them returned.
  /// An exception of a kernel counts as a failure and is rethrown here.
  std::errc run(
      const Kernel& kernel, const Check& check = [] { return std::errc{}; });

 private:
  friend class ThreadCore;
  friend class CoreCheck;
  CoreGroup(int cores, const WaitPolicy& policy) : cores_(cores), policy_(policy) {}

  void serve(int index);
  void run_core(int index);
  // Relaxed: pairs with run_core(), and only says that waits must end.
  [[nodiscard]] bool failed() const { return error_.load(std::memory_order_relaxed) != 0; }
  std::errc check() const { return failed() ? std::errc::operation_canceled : (*check_)(); }
  template <std::invocable CheckOfWait>
  std::errc barrier(const CheckOfWait& check);
  /// `passed`: the barrier is over. Otherwise this core waits for its end, from `before` on.
  struct CoreArrival {
    std::uint64_t before;
    std::errc error;
    bool passed;
  };
  CoreArrival arrive();
  [[nodiscard]] std::errc outcome(std::uint64_t before) const;

  // Fixed after create().
  int cores_;
  WaitPolicy policy_;
  std::vector<base::HelperThread> threads_;  // cores 1, 2, ...

  // Written by run() while the threads sleep; started_ publishes them.
  const Kernel* kernel_ = nullptr;
  const Check* check_ = nullptr;
  bool ending_ = false;
  std::uint64_t runs_ = 0;

  // Written by all cores.
  std::exception_ptr exception_;  // by the core that set error_ first; read after all have ended
  std::atomic<int> error_{0};     // the first std::errc
  std::atomic<int> arrived_{0};   // cores at the barrier
  SyncWord started_{};            // runs begun
  SyncWord ended_{};              // kernels ended on threads of the group
  SyncWord barrier_{};            // 2 * barriers passed | 1 once a core has failed
};

inline const WaitPolicy& ThreadCore::policy() const {
  return group_.policy_;
}

template <std::invocable Check>
std::errc ThreadCore::sync(const Check& check) {
  return group_.barrier(check);
}

template <std::invocable CheckOfWait>
std::errc CoreGroup::barrier(const CheckOfWait& check) {
  const CoreArrival place = arrive();
  if (place.passed || place.error != std::errc{}) {
    return place.error;
  }
  const auto changed = [&place](std::uint64_t seen) { return seen != place.before; };
  const std::errc error = wait_on(barrier_, policy_, changed, check);
  return error != std::errc{} ? error : outcome(place.before);
}

static_assert(Core<ThreadCore>);

/// A core whose waits also end when `watch` says so, which is called once a wait has stopped spinning. Satisfies Core.
template <std::invocable Watch>
class WatchedCore {
 public:
  using Check = WatchedCheck<Watch>;

  WatchedCore(ThreadCore& core, Watch& watch) : core_(core), check_(core.check(), watch) {}
  WatchedCore(const WatchedCore&) = delete;
  WatchedCore& operator=(const WatchedCore&) = delete;
  ~WatchedCore() = default;

  [[nodiscard]] int index() const { return core_.index(); }
  [[nodiscard]] int count() const { return core_.count(); }
  static std::uint64_t load(const SyncWord& word) { return ThreadCore::load(word); }
  static void store(SyncWord& word, std::uint64_t value) { ThreadCore::store(word, value); }
  static std::uint64_t fetch_add(SyncWord& word, std::uint64_t value) { return ThreadCore::fetch_add(word, value); }
  Waiting<const Check> begin_wait() { return {core_.policy(), check_}; }
  static void fence() { ThreadCore::fence(); }
  static void dcci(const void* address) { ThreadCore::dcci(address); }
  static void dcci_all() { ThreadCore::dcci_all(); }
  std::errc sync() { return core_.sync(check_); }

 private:
  ThreadCore& core_;
  const Check check_;
};

}  // namespace shmem
