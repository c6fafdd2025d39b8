// SPDX-License-Identifier: Apache-2.0
// UCX's context and worker: what moves bytes, and what one sleeps on until there are any.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "shmem/net/ucx_calls.hpp"

namespace shmem {

/// As many threads at once as were asked for in create(). What UCX made for it (endpoints, keys, memory) goes first.
class UcxWorker {
 public:
  static Result<std::unique_ptr<UcxWorker>> create(const UcxCalls& calls, std::size_t far_pes, bool threads);
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;
  ~UcxWorker();

  [[nodiscard]] const UcxCalls& calls() const { return calls_; }
  [[nodiscard]] ucp_context_h context() const { return context_; }
  [[nodiscard]] ucp_worker_h worker() const { return worker_; }
  /// What others need to reach it.
  [[nodiscard]] const std::vector<std::byte>& address() const { return address_; }
  /// "tcp", "rc_mlx5, tcp": what there is on this node.
  [[nodiscard]] const std::string& transports() const { return transports_; }
  /// True if no adapter writes to other nodes' memory, and UCX carries all between two PEs over one stream.
  [[nodiscard]] bool one_stream() const { return transports_ == "tcp"; }

  /// True if there was anything.
  bool progress() { return calls_.worker_progress(worker_) != 0; }
  /// Until there may be something to progress; at once if there is.
  void nap(std::chrono::nanoseconds longest);
  /// Ends a nap.
  void wake() { calls_.worker_signal(worker_); }

 private:
  explicit UcxWorker(const UcxCalls& calls) : calls_(calls) {}
  Result<void> make_context(std::size_t far_pes);
  Result<void> make_worker(bool threads);
  Result<void> read_address();
  Result<void> read_transports();

  UcxCalls calls_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;  // the worker's
  std::vector<std::byte> address_;
  std::string transports_;
};

/// "what: what UCX says".
tl::unexpected<Error> ucx_failure(const UcxCalls& calls, ucs_status_t status, const std::string& what);

}  // namespace shmem
