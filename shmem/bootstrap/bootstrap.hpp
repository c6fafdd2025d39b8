// SPDX-License-Identifier: Apache-2.0
// What a job needs before it has symmetric memory: who am I, how many are we, tell each other a few bytes, meet, give
// up.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shmem/bootstrap/uid_session.hpp"
#include "shmem/options.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// One PE's end of the job's control plane. Used by one thread at a time, but for aborted(), which any thread may call.
/// Every step has a timeout whose Error names the PEs that did not come.
class Bootstrap {
 public:
  Bootstrap() = default;
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;
  virtual ~Bootstrap() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// Everybody's bytes, in rank order: size() times mine.size(). Collective; mine.size() is the same on all.
  virtual Result<std::vector<std::byte>> allgather(std::span<const std::byte> mine) = 0;
  /// Collective.
  virtual Result<void> barrier() = 0;
  /// That of the PEs of all nodes, if this is the one of a single node: what decides how many steps there are must be
  /// the same for all.
  [[nodiscard]] virtual Bootstrap& everybody() { return *this; }

  /// Tells the job to end with `status` because of `reason`, and returns the status it ends with: that of the first
  /// call of all PEs. Does not end this process.
  virtual int abort(int status, const std::string& reason) = 0;
  /// The reason, once somebody (a PE or the launcher) has ended the job. One memory load while nobody has.
  [[nodiscard]] virtual std::optional<std::string> aborted() const = 0;
  /// 0 until then. Whoever ends the job changes it and wakes who sleeps on it, so that a PE that sleeps on another word
  /// too wakes at once (WaitPolicy). nullptr: nobody is told, and sleeps must be short.
  [[nodiscard]] virtual const std::atomic<std::uint32_t>* alarm() const { return nullptr; }
  /// Tells the launcher that this PE has left the job in good order: from now on its exit is no failure of the others.
  virtual void leave() = 0;
};

/// What is known of the job before the PEs have found each other.
struct BootstrapRequest {
  struct Place {
    int rank;
    int size;
  };
  BootstrapKind kind = BootstrapKind::kAuto;
  std::chrono::milliseconds limit = kBootstrapLimit;  // for each step
  std::optional<Place> expected = {};                 // a launcher that says something else is an error
  UidSettings uid = {};
  std::optional<UniqueId> id = {};           // from shmemx_get_uniqueid; without one, the settings' session
  std::optional<UidListener> listener = {};  // of this id, if this process serves
  std::string mpi_plugin = {};               // for kMpi; "": libshmem's own
  const void* communicator = nullptr;        // for kMpi: where an MPI_Comm stands; nullptr: MPI_COMM_WORLD
};
/// What the environment asks for.
BootstrapRequest bootstrap_request(const Options& options);

/// The bootstrap that was asked for. kAuto: the one whose launcher started this process; without any, a job of one PE.
Result<std::unique_ptr<Bootstrap>> make_bootstrap(BootstrapRequest request);

}  // namespace shmem
