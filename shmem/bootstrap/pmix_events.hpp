// SPDX-License-Identifier: Apache-2.0
// Events from libpmix: the job has lost a process, or this process has lost its launcher.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "base/helper_thread.hpp"
#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/bootstrap/pmix_client.hpp"

namespace shmem {

/// Knows why the job has ended, once it has. Ends this process if the launcher is gone and the process does not end by
/// itself. At most one exists, because libpmix passes no pointer of ours to its handlers. Thread-safe.
class PmixEvents {
 public:
  /// `grace`: how long the process may take to end by itself when the launcher is gone.
  static Result<std::unique_ptr<PmixEvents>> start(const std::shared_ptr<const PmixClient>& client, int rank,
                                                   std::chrono::milliseconds grace);
  ~PmixEvents();

  /// The first reason counts.
  void end(const std::string& reason) { reason_.set(reason); }
  [[nodiscard]] const EndReason& reason() const { return reason_; }
  /// This PE leaves or ends the job: later events do not end its process. Deregisters the handler.
  void leave();

 private:
  PmixEvents(const std::shared_ptr<const PmixClient>& client, int rank) : client_(client), rank_(rank) {}

  static void handle(std::size_t id, pmix_status_t status, const pmix_proc_t* source, pmix_info_t* info,
                     std::size_t infos, pmix_info_t* results, std::size_t result_count,
                     pmix_event_notification_cbfunc_fn_t done, void* done_data);
  void hear(pmix_status_t status, const pmix_proc_t* source);
  void end_process_unless_it_ends(std::chrono::milliseconds grace);

  const std::shared_ptr<const PmixClient> client_;
  const int rank_;
  std::size_t handler_ = 0;
  bool handled_ = false;

  EndReason reason_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  bool orphaned_ = false;  // the launcher is gone
  bool going_ = false;

  base::HelperThread thread_;
};

}  // namespace shmem
