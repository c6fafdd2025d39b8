// SPDX-License-Identifier: Apache-2.0
// This process's UCX worker, and the memory that other PEs reach through it.
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "shmem/net/network.hpp"
#include "shmem/net/ucx/calls.hpp"

namespace shmem {

/// Thread-safe. Endpoints, keys and memory that UCX made for it are released before it.
class UcxWorker {
 public:
  /// With UCX's one-sided operations if an adapter has them; `direct`: even if none has. UCX does what the adapter
  /// cannot by messages, which may come from any program that reaches this process's ports, name any address of this
  /// process, and need no key. So they are off over TCP alone.
  static Result<std::unique_ptr<UcxWorker>> create(const UcxCalls& calls, std::size_t remote_pes, bool direct = false);
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

  /// True if there was anything to do.
  bool progress() { return calls_.worker_progress(worker_) != 0; }
  /// Sleeps until there may be something to progress; returns at once if there is.
  void sleep(std::chrono::nanoseconds longest) {
    sleep(longest, [] { return false; });
  }
  /// Not at all if done(): another thread may have progressed what this one waits for.
  template <std::predicate Done>
  void sleep(std::chrono::nanoseconds longest, Done done) {
    if (arm() && !done()) {
      await_event(longest);
    }
  }
  /// Ends a sleep.
  void wake() { calls_.worker_signal(worker_); }

 private:
  explicit UcxWorker(const UcxCalls& calls) : calls_(calls) {}
  Result<void> make_context(std::size_t remote_pes);
  void end_context();
  Result<void> make_worker();
  Result<void> read_address();
  Result<void> read_transports();
  /// True if there is nothing to progress: the next event ends await_event().
  bool arm() { return calls_.worker_arm(worker_) == UCS_OK; }
  void await_event(std::chrono::nanoseconds longest) const;

  UcxCalls calls_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;  // the worker's
  std::vector<std::byte> address_;
  std::string transports_;
  bool one_sided_ = false;
};

/// "what: what UCX says".
Error ucx_failure(const UcxCalls& calls, ucs_status_t status, const std::string& what);

/// This PE's segments, registered for the lifetime of this object.
class UcxMemory {
 public:
  UcxMemory() = default;
  UcxMemory(const UcxMemory&) = delete;
  UcxMemory& operator=(const UcxMemory&) = delete;
  ~UcxMemory();

  /// Once. The worker outlives this. Without one-sided operations no key is needed, and nothing is registered.
  Result<void> add(const UcxWorker& worker, const std::vector<std::span<std::byte>>& segments);
  /// The key by which other PEs reach a segment; empty without a segment.
  [[nodiscard]] const std::vector<std::byte>& key(std::size_t segment) const { return keys_[segment]; }

 private:
  Result<void> add_segment(std::size_t segment, std::span<std::byte> memory);

  const UcxWorker* worker_ = nullptr;
  std::array<ucp_mem_h, kSegments> handles_{};
  std::array<std::vector<std::byte>, kSegments> keys_;
};

}  // namespace shmem
