// SPDX-License-Identifier: Apache-2.0
// This process's UCX worker.
#pragma once

#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.hpp"
#include "base/private_fd.hpp"
#include "wire/ucx/calls.hpp"

namespace wire {

/// Threads that sleep until another one has progressed what they wait for. Thread-safe.
class UcxSleepers {
 public:
  /// A system call only if there are sleepers that have not been woken yet.
  void wake() {
    // Both this and enter() change the count, so one of them comes first: either this sees the sleeper, or the sleeper
    // (acquire) sees what was progressed before (release).
    if (count_.fetch_add(0, std::memory_order_acq_rel) != 0) [[unlikely]] {
      signal();
    }
  }
  /// The caller looks at what it waits for between this and its sleep.
  void enter();
  void leave() { count_.fetch_sub(1, std::memory_order_relaxed); }
  /// Readable after a wake(). -1: the system has given none.
  [[nodiscard]] int event() const { return event_.get(); }
  [[nodiscard]] std::chrono::nanoseconds limit(std::chrono::nanoseconds sleep) const {
    return event_ ? sleep : std::min<std::chrono::nanoseconds>(sleep, std::chrono::milliseconds{1});
  }

 private:
  void signal();

  const base::UniqueFd event_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::atomic<int> count_{0};
  std::mutex mutex_;
  bool signalled_ = false;  // guarded by mutex_
};

/// UCX 1.13 ends the process if it cannot start its thread: an Error if no threads can be started. Before
/// UcxWorker::create().
Result<void> check_ucx_threads();

/// Thread-safe. Endpoints, keys and memory that UCX made for it are released before it.
class UcxWorker {
 public:
  /// With UCX's one-sided operations if an adapter has them; `direct`: even if none has. UCX does what the adapter
  /// cannot by messages, which may come from any program that reaches this process's ports, name any address of this
  /// process, and need no key. So they are off over TCP alone. `rdma_only`: fails if there is only TCP, and
  /// does not use it alongside an adapter.
  static Result<std::unique_ptr<UcxWorker>> create(const UcxCalls& calls, std::size_t remote_pes, bool direct = false,
                                                   bool rdma_only = false);
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;
  ~UcxWorker();

  [[nodiscard]] const UcxCalls& calls() const { return calls_; }
  [[nodiscard]] ucp_context_h context() const { return context_; }
  [[nodiscard]] ucp_worker_h worker() const { return worker_; }
  /// The address by which other PEs reach it.
  [[nodiscard]] const std::vector<std::byte>& address() const { return address_; }
  /// The transports of this node: "tcp", "rc_mlx5, tcp".
  [[nodiscard]] const std::string& transports() const { return transports_; }
  /// Otherwise no adapter writes to other nodes' memory, and UCX uses one stream between two PEs.
  [[nodiscard]] bool one_sided() const { return one_sided_; }

  /// Makes an endpoint for the worker at another address; `failed` is called with `argument` when that worker is gone.
  [[nodiscard]] ucs_status_t connect(std::span<const std::byte> address, ucp_err_handler_cb_t failed, void* argument,
                                     ucp_ep_h& endpoint) const;
  /// Begins to close it. By force: what was not sent is dropped. Gives UCX's request; nullptr: it is closed.
  [[nodiscard]] void* close(ucp_ep_h endpoint, bool force) const;
  /// Makes progress until UCX's `request` has ended, at most until `deadline`, and frees it. There may be none.
  void finish(void* request, std::chrono::steady_clock::time_point deadline);

  /// `worked` is called after each progress(), by any thread, that had something to do. Before other threads use this.
  void call_after_progress(std::function<void()> worked) { worked_ = std::move(worked); }
  /// True if there was anything to do.
  bool progress() {
    if (calls_.worker_progress(worker_) == 0) {
      return false;
    }
    sleepers_.wake();
    if (worked_) {
      worked_();
    }
    return true;
  }
  /// Sleeps until there may be something to progress; returns at once if there is.
  void sleep(std::chrono::nanoseconds longest) {
    if (arm()) {
      await_event(longest);
    }
  }
  /// Sleeps until done(), or there may be something to progress: another thread may progress what makes it done().
  template <std::predicate Done>
  void sleep_until(Done done, std::chrono::nanoseconds longest) {
    sleepers_.enter();
    if (arm() && !done()) {
      await_event(sleepers_.limit(longest), sleepers_.event());
    }
    sleepers_.leave();
  }
  /// What threads in sleep_until() wait for may be done.
  void wake_sleepers() { sleepers_.wake(); }
  /// Ends a sleep.
  void wake() { calls_.worker_signal(worker_); }

 private:
  explicit UcxWorker(const UcxCalls& calls) : calls_(calls) {}
  Result<void> make_context(std::size_t remote_pes);
  /// Makes the context again if UCX's one-sided operations are to be used.
  Result<void> choose_operations(std::size_t remote_pes, bool direct, bool rdma_only);
  void end_context();
  Result<void> make_worker();
  Result<void> read_address();
  Result<void> read_transports();
  /// With rdma_only: the transports that were found are not TCP.
  [[nodiscard]] Result<void> check_rdma() const;
  /// True if there is nothing to progress: the next event ends await_event().
  bool arm() { return calls_.worker_arm(worker_) == UCS_OK; }
  void await_event(std::chrono::nanoseconds longest, int other_event = -1);
  /// UCX opens connections at any time, and for programs that this process starts as well.
  void keep_connections_here();

  UcxCalls calls_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;  // the worker's
  base::PrivateEpoll connections_;
  std::atomic<std::chrono::steady_clock::rep> next_look_{0};  // for new connections
  UcxSleepers sleepers_;
  std::function<void()> worked_;
  std::vector<std::byte> address_;
  std::string transports_;
  bool without_tcp_ = false;
  bool one_sided_ = false;
};

/// "what: what UCX says".
Error ucx_failure(const UcxCalls& calls, ucs_status_t status, const std::string& what);

/// UCX's arguments of a callback.
inline std::span<const std::byte> bytes_of(const void* bytes, std::size_t length) {
  return {static_cast<const std::byte*>(bytes), length};
}

/// True: the message has come whole. We send none in another way.
inline bool is_whole(const ucp_am_recv_param_t& parameters) {
  return (parameters.recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
}

/// UCX calls `callback` for messages with this id.
void receive_by(const UcxWorker& worker, unsigned number, ucp_am_recv_callback_t callback, void* argument);

}  // namespace wire
