// SPDX-License-Identifier: Apache-2.0
// The bootstrap of PEs that are processes of an MPI program.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/bootstrap/mpi/plugin.h"

namespace shmem {

/// PE 0 receives from each PE and answers all of them, so that it knows the missing PEs. No call of MPI blocks. After a
/// failed step, all later ones fail at once with the same Error. Thread safety: see Bootstrap.
class MpiBootstrap final : public Bootstrap {
 public:
  /// Collective over the communicator at this address; nullptr: MPI_COMM_WORLD.
  static Result<std::unique_ptr<MpiBootstrap>> join(const shmem_mpi_plugin& plugin, const void* communicator,
                                                    std::chrono::milliseconds limit);
  ~MpiBootstrap() override;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  Result<std::vector<std::byte>> allgather(std::span<const std::byte> mine) override;
  int abort(int status, const std::string& reason) override;
  /// The launcher sees the status, and MPI_Abort would end this process without its exit handlers.
  void announce_exit(int /*status*/, const std::string& /*reason*/) override {}
  /// MPI_Abort would end all processes.
  void give_up_start(const std::string& reason) override;
  [[nodiscard]] std::optional<std::string> aborted() const override { return reason_.get(); }
  [[nodiscard]] const std::atomic<std::uint32_t>* alarm() const override { return reason_.alarm(); }
  void leave() override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Transfer {
    shmem_mpi_transfer state{};
    int pe = 0;
    std::vector<std::byte> bytes;
    bool done = false;
  };
  using Transfers = std::list<Transfer>;  // elements must not move

  MpiBootstrap(const shmem_mpi_plugin& plugin, shmem_mpi_job* job, std::chrono::milliseconds limit)
      : plugin_(plugin), job_(job), limit_(limit) {}

  Result<void> open();
  /// PE 0's part of a step.
  Result<std::vector<std::byte>> gather(std::span<const std::byte> mine);
  /// The other PEs' part.
  Result<std::vector<std::byte>> send_to_first(std::span<const std::byte> mine);
  Result<std::vector<std::byte>> receive_all(std::span<const std::byte> mine);
  Result<void> answer_all(const std::vector<std::byte>& answer);

  Result<Transfer*> send(int pe, std::vector<std::byte> bytes);
  Result<Transfer*> receive(int pe, std::size_t room);
  /// Waits until all transfers are done.
  Result<void> finish(Clock::time_point deadline);
  /// The Error of a call of the plug-in.
  [[nodiscard]] Error failed(const std::string& what, int status) const;
  [[nodiscard]] Error waited_for(const std::string& missing) const;
  Error give_up(Error error);

  const shmem_mpi_plugin& plugin_;
  shmem_mpi_job* job_;
  const std::chrono::milliseconds limit_;
  int rank_ = 0;
  int size_ = 1;
  std::uint64_t step_ = 0;
  std::unique_ptr<Transfers> transfers_ = std::make_unique<Transfers>();
  bool unfinished_ = true;  // until open() is over, and when transfers remain
  std::optional<Error> failure_;

  EndReason reason_;
};

/// Loads the plug-in at `plugin`, or libshmem's own for this process's MPI if that is empty, and joins with it.
Result<std::unique_ptr<Bootstrap>> join_mpi_job(const std::string& plugin, const void* communicator,
                                                std::chrono::milliseconds limit);

}  // namespace shmem
