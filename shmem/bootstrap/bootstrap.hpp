// SPDX-License-Identifier: Apache-2.0
// What a job needs before it has symmetric memory: this PE's rank, the number of PEs, allgather, barrier, abort.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shmem/bootstrap/start_record.hpp"
#include "shmem/bootstrap/uid_session.hpp"
#include "shmem/config/options.hpp"
#include "shmem/cores/wait.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// One PE's end of the job's control plane. Used by one thread at a time, except aborted(), which any thread may call.
/// Every step has a timeout whose Error names the missing PEs.
class Bootstrap {
 public:
  Bootstrap() = default;
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;
  virtual ~Bootstrap() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// Collective: the bytes of all PEs, in rank order. mine.size() is the same on all.
  virtual Result<std::vector<std::byte>> allgather(std::span<const std::byte> mine) = 0;
  /// Collective.
  virtual Result<void> barrier() {
    const auto all = allgather({});
    return all ? Result<void>{} : all.error();
  }
  /// The bootstrap of the PEs of all nodes, if this is the bootstrap of one node. A decision that changes the number of
  /// steps must be the same on all PEs.
  [[nodiscard]] virtual Bootstrap& everybody() { return *this; }

  /// Ends the job with `status` because of `reason`. Returns the job's status, which is that of the first call on any
  /// PE. Does not end this process.
  virtual int abort(int status, const std::string& reason) = 0;
  /// The process of this PE runs exit(), which ends the job: tells the others, unless the launcher does. As abort().
  virtual void announce_exit(int status, const std::string& reason) { abort(status, reason); }
  /// This PE could not start, and its process goes on. Tells the others, if that is possible without ending processes.
  virtual void give_up_start(const std::string& reason) { abort(EXIT_FAILURE, reason); }
  /// The reason, once a PE or the launcher has ended the job. One memory load before that.
  [[nodiscard]] virtual std::optional<std::string> aborted() const = 0;
  /// A word that is 0 until then. The end of the job changes it and wakes threads that sleep on it, also those that
  /// sleep on another word as well (WaitPolicy). nullptr: there is no wake-up, and sleeps must be short.
  [[nodiscard]] virtual const std::atomic<std::uint32_t>* alarm() const { return nullptr; }
  /// How the process of a PE that has ended did so, as far as the launcher tells: "exited with status 0"; else "".
  [[nodiscard]] virtual std::string end_of(int /*rank*/) const { return ""; }
  /// A launcher ends the job as soon as a PE ends too early, and knows best which one that was.
  [[nodiscard]] virtual bool has_launcher_that_tells() const { return false; }
  /// All PEs go on when one of them dies: from now on its end does not end the job. Called by each PE. An Error if the
  /// launcher, or what connects the PEs, does not let them.
  virtual Result<void> survive() {
    return fail(std::errc::not_supported,
                "the launcher ends a job that has lost a PE (oshrun does not, nor do jobs by unique id)");
  }
  /// Another process may take the place of this PE when it has died, with these files. After survive().
  virtual Result<void> keep_for_replacement(int /*heaps*/, int /*areas*/) { return {}; }
  /// The other PEs go on without this process of a PE, which runs: the launcher may end it and start another one in its
  /// place. Without an effect if another process has the place already.
  virtual void leave_out(int /*rank*/, std::int32_t /*process*/) {}
  /// The steps of the start that a process in the place of another one does not make.
  virtual void set_unrecorded(bool /*unrecorded*/) {}
  /// This process has taken the place of a PE that has died.
  [[nodiscard]] virtual bool replaces() const { return false; }
  /// In such a process: the files that the others share, once. Its steps give what they gave when the job started.
  virtual std::optional<NodeFds> take_over() { return std::nullopt; }
  /// Tells the launcher that this PE has left the job: from now on its exit does not fail the others.
  virtual void leave() = 0;
  /// After leave(), in a process that ends without the destructor: returns when the others need this process no more.
  virtual void serve_others() {}
};

/// Why the job has ended, once it has. Thread-safe.
class EndReason {
 public:
  /// The first reason counts.
  void set(const std::string& reason) {
    const std::scoped_lock lock(mutex_);
    if (ended_.load(std::memory_order_relaxed) == 0) {
      text_ = reason;
      ended_.store(1, std::memory_order_release);  // pairs with get()
      futex_wake_all(ended_);
    }
  }
  /// One load while there is no reason.
  [[nodiscard]] std::optional<std::string> get() const {
    return ended_.load(std::memory_order_acquire) != 0 ? std::optional(text_) : std::nullopt;
  }
  /// As Bootstrap::alarm().
  [[nodiscard]] const std::atomic<std::uint32_t>* alarm() const { return &ended_; }

 private:
  std::mutex mutex_;
  std::string text_;  // constant once ended_ is 1
  std::atomic<std::uint32_t> ended_{0};
};

/// What is known about the job before the PEs have found each other.
struct BootstrapRequest {
  struct JobRank {
    int rank;
    int size;
  };
  BootstrapKind kind = BootstrapKind::kAuto;
  std::chrono::milliseconds limit = kBootstrapLimit;  // for each step
  std::optional<JobRank> expected = {};               // an Error if the launcher says something else
  UidSettings uid = {};
  std::optional<UniqueId> id = {};           // from shmemx_get_uniqueid; without one, the settings' session
  std::optional<UidListener> listener = {};  // of this id, if this process is the server
  std::string mpi_plugin = {};               // for kMpi; "": libshmem's own
  const void* communicator = nullptr;        // for kMpi: points to an MPI_Comm; nullptr: MPI_COMM_WORLD
};
/// The request of the environment.
BootstrapRequest bootstrap_request(const Options& options);

/// Joins by the requested bootstrap. kAuto: by that of the launcher of this process; without a launcher, a one-PE job.
Result<std::unique_ptr<Bootstrap>> make_bootstrap(BootstrapRequest request);

}  // namespace shmem
