// SPDX-License-Identifier: Apache-2.0
// The thread of a device that this process has open: it lets other processes look at the device (status_socket.hpp),
// and notices its loss while the process makes no calls.
#pragma once

#include <pthread.h>

#include <atomic>
#include <memory>
#include <string>

#include "base/disposal.hpp"
#include "base/fd.hpp"
#include "base/private_fd.hpp"
#include "driver/result.hpp"

namespace gba {

class Device;

/// A thread that sleeps until a process of the same user, or of root, connects, or until the device is lost. It reads
/// registers, and waits for no client: an answer is one descriptor, there are at most 100 in a second, and what clients
/// send is closed in other threads. If the
/// kernel wants the device back, it gets it, also from a process that computes or whose barriers end too soon to look.
/// A forked child does not have the thread.
class StatusServer {
 public:
  /// For a device with this key. Null if $GBA_STATUS is "off", or if the process cannot have another thread or socket:
  /// the device works without. `device` outlives the object.
  static std::unique_ptr<StatusServer> start(Device& device, const std::string& key);
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;
  /// Waits for the end of an answer, which stops at the next group.
  ~StatusServer();

 private:
  StatusServer(Device& device, base::UniqueFd listener, base::UniqueFd wake);

  static void* run(void* server);
  void serve();
  /// False: there is no memory for it now.
  bool notice_loss();
  void answer(int client);
  Result<base::UniqueFd> report();

  Device& device_;
  const unsigned fork_;      // forks() of the process that the thread is in
  base::Disposal disposal_;  // of clients' connections
  base::PrivateFd listener_;
  base::UniqueFd wake_;
  std::atomic<bool> ending_{false};
  pthread_t thread_{};
};

}  // namespace gba
