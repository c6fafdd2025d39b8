// SPDX-License-Identifier: Apache-2.0
// A thread that does what other PEs wait for while the program computes.
#pragma once

#include <memory>
#include <thread>

#include "shmem/net/network.hpp"

namespace shmem {

/// Runs while it lives. REQUIRES: a network for several threads, which outlives it.
class ProgressThread {
 public:
  /// An Error if the system gives no thread.
  static Result<std::unique_ptr<ProgressThread>> start(Network& network);
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;
  ~ProgressThread();

 private:
  explicit ProgressThread(Network& network) : network_(network) {}
  static void run(const std::stop_token& stop, Network& network);

  Network& network_;
  std::jthread thread_;
};

}  // namespace shmem
