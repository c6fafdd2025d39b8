// SPDX-License-Identifier: Apache-2.0
// What libpmix tells a PE at any time: that the job loses a process, or this process its launcher.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "shmem/bootstrap/helper_thread.hpp"
#include "shmem/bootstrap/pmix_client.hpp"

namespace shmem {

/// Knows why the job has ended, once it has, and ends this process when the launcher is gone and it does not end by
/// itself. One at a time, because libpmix hands its handlers no pointer of ours. Thread safe.
class PmixEvents {
 public:
  /// `grace`: to end by itself when the launcher is gone.
  static Result<std::unique_ptr<PmixEvents>> start(const std::shared_ptr<const PmixClient>& client, int rank,
                                                   std::chrono::milliseconds grace);
  ~PmixEvents();

  /// The first reason counts.
  void end(const std::string& reason);
  /// One load while there is none.
  [[nodiscard]] std::optional<std::string> ended() const;
  /// As Bootstrap::alarm().
  [[nodiscard]] const std::atomic<std::uint32_t>* alarm() const { return &ended_; }
  /// This PE leaves the job, or ends it: whatever happens now does not end its process. Tells libpmix so.
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

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Under mutex_.
  std::string reason_;
  bool orphaned_ = false;  // the launcher is gone
  bool going_ = false;

  std::atomic<std::uint32_t> ended_{0};  // 1: reason_ is there
  HelperThread thread_;
};

}  // namespace shmem
