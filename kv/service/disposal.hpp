// SPDX-License-Identifier: Apache-2.0
// The end of members that have gone, and of their memory, in a thread of its own.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "shmem/bootstrap/helper_thread.hpp"

namespace shmem::exchange {

/// The last process that unmaps memory, of a member that was killed for instance, also frees it: that may take a second
/// for each GiB. No call waits for that, nor does the thread that notices deaths. Thread-safe.
class Disposal {
 public:
  Disposal() = default;
  Disposal(const Disposal&) = delete;
  Disposal& operator=(const Disposal&) = delete;
  /// Ends the rest.
  ~Disposal();

  /// Ends a Peer, or a RemoteMemory, soon after the last call that uses it.
  void add(std::shared_ptr<const void> used);

 private:
  void run();

  std::mutex mutex_;  // for the next three
  std::condition_variable changed_;
  std::vector<std::shared_ptr<const void>> used_;
  bool stop_ = false;
  HelperThread thread_;  // started with the first of them
};

}  // namespace shmem::exchange
