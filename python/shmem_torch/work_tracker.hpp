// SPDX-License-Identifier: Apache-2.0
// What a process group knows of its works, from their begin to their end: numbers, timeouts, hooks, and whether the
// group has failed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "python/shmem_torch/versions.hpp"

namespace shmem_torch {

class WorkTracker;

/// A work from its begin to its end: until end(), or until this goes, it is pending. The tracker outlives it.
class WorkTicket {
 public:
  WorkTicket(WorkTicket&& other) noexcept
      : tracker_(std::exchange(other.tracker_, nullptr)),
        type_(other.type_),
        timeout_(other.timeout_),
        number_(other.number_),
        begun_(other.begun_),
        ends_extension_(other.ends_extension_),
        since_(other.since_) {}
  WorkTicket& operator=(WorkTicket&&) = delete;
  ~WorkTicket() { end(); }
  void end();

  [[nodiscard]] std::chrono::milliseconds timeout() const { return timeout_; }
  /// Among the collective calls of the group, from 1 on; of a message: that of the last call before it.
  [[nodiscard]] std::uint64_t number() const { return number_; }

 private:
  friend class WorkTracker;
  WorkTicket(WorkTracker& tracker, c10d::OpType type) : tracker_(&tracker), type_(type) {}

  WorkTracker* tracker_;  // none: it has ended
  c10d::OpType type_;
  std::chrono::milliseconds timeout_{0};
  std::uint64_t number_ = 0;
  std::uint64_t begun_ = 0;  // among all works
  bool ends_extension_ = false;
  WorkClock::time_point since_{};  // if times are measured
};

/// Thread-safe. It outlives the group of libshmem, which reconfigure() replaces. A call takes no lock and reads no
/// clock unless the program has asked for what needs it.
class WorkTracker {
 public:
  explicit WorkTracker(std::chrono::milliseconds timeout) : timeout_(timeout) {}
  WorkTracker(const WorkTracker&) = delete;
  WorkTracker& operator=(const WorkTracker&) = delete;

  [[nodiscard]] std::chrono::milliseconds timeout() const { return timeout_.load(std::memory_order_relaxed); }
  void set_timeout(std::chrono::milliseconds timeout) { timeout_.store(timeout, std::memory_order_relaxed); }
  /// For all works from now on, until the first of them is over.
  void extend_timeout(std::chrono::milliseconds more);

  /// `given` < 0: the timeout of the group.
  WorkTicket begin(c10d::OpType type, std::chrono::milliseconds given);
  /// Until no work is under way. Each of them has a timeout.
  void wait_for_pending() const;
  [[nodiscard]] bool has_pending() const { return pending_.load(std::memory_order_relaxed) != 0; }
  /// The collective calls that have begun.
  [[nodiscard]] std::uint64_t collective_calls() const { return calls_.load(std::memory_order_relaxed); }
  /// After reconfigure(): the new members count from 0.
  void begin_again();

  /// Called at the end of each work, by the thread that ends it.
  void set_completion_hook(CompletionHook hook);
  /// Works measure their times.
  void measure_times() { measures_.store(true, std::memory_order_relaxed); }
  void add_abort_hook(std::int64_t id, AbortHook hook);
  void remove_abort_hook(std::int64_t id);

  /// The group has failed with this negative errno, or was aborted here (-ECONNABORTED): calls the abort hooks, the
  /// first time.
  void fail(int error);
  [[nodiscard]] ErrorType error() const { return error_.load(std::memory_order_acquire); }

 private:
  friend class WorkTicket;
  struct Extension {
    std::chrono::milliseconds more;
    std::optional<std::uint64_t> first;  // the work whose end is its own
  };

  void end(const WorkTicket& ticket);

  std::atomic<std::chrono::milliseconds> timeout_;
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> begun_{0};
  std::atomic<std::uint64_t> pending_{0};
  std::atomic<bool> measures_{false};
  std::atomic<bool> is_extended_{false};
  std::atomic<ErrorType> error_{ErrorType::SUCCESS};
  std::mutex mutex_;  // for the next
  std::vector<Extension> extensions_;
  std::shared_ptr<const CompletionHook> completion_hook_;
  std::map<std::int64_t, std::shared_ptr<const AbortHook>> abort_hooks_;
};

}  // namespace shmem_torch
