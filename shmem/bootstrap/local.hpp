// SPDX-License-Identifier: Apache-2.0
// The bootstrap of PEs that oshrun started, over the job memory that they inherit.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/bootstrap/job_memory.hpp"

namespace shmem {

/// Once a step has failed, all later ones fail at once with the same Error. Thread safety: see Bootstrap.
class LocalBootstrap final : public Bootstrap {
 public:
  /// Joins the job as `rank`. An Error if another live process is that PE, or this one gave up in the middle of an
  /// earlier step. In a job that goes on when a PE dies, the process may take the place of a PE that has died.
  static Result<std::unique_ptr<LocalBootstrap>> join(std::shared_ptr<const JobMemory> memory, int rank,
                                                      std::chrono::milliseconds limit = kBootstrapLimit);

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return memory_->pes(); }
  Result<std::vector<std::byte>> allgather(std::span<const std::byte> mine) override;
  int abort(int status, const std::string& reason) override;
  [[nodiscard]] std::optional<std::string> aborted() const override;
  [[nodiscard]] const std::atomic<std::uint32_t>* alarm() const override { return &memory_->header().end.state; }
  [[nodiscard]] std::string end_of(int rank) const override;
  [[nodiscard]] bool has_launcher_that_tells() const override;
  Result<void> survive() override;
  Result<void> keep_for_replacement(int heaps, int areas) override;
  void leave_out(int rank, std::int32_t process) override;
  void set_unrecorded(bool unrecorded) override { is_unrecorded_ = unrecorded; }
  [[nodiscard]] bool replaces() const override { return replaces_; }
  std::optional<NodeFds> take_over() override;
  void leave() override;

 private:
  LocalBootstrap(std::shared_ptr<const JobMemory> memory, int rank, std::chrono::milliseconds limit);

  /// Instead of the PE that has died.
  Result<void> read_record();
  Result<std::vector<std::byte>> gather(std::span<const std::byte> mine);
  /// One round: gives `part` of a collective of `whole` bytes to the others. Afterwards their parts can be read.
  Result<void> run_round(std::span<const std::byte> part, std::size_t whole);
  [[nodiscard]] Result<void> await(std::uint64_t round) const;
  [[nodiscard]] Error explain(std::errc why, std::uint64_t round) const;
  /// The PEs that have not arrived in `round`, or only the dead ones of them.
  [[nodiscard]] std::vector<int> missing(std::uint64_t round, bool only_dead) const;
  [[nodiscard]] const Offering& offering(int pe, std::uint64_t round) const;

  std::shared_ptr<const JobMemory> memory_;
  int rank_;
  std::chrono::milliseconds limit_;
  WaitPolicy policy_;
  std::optional<Error> failure_;
  StartRecord record_;  // while the PEs start; or what another PE has recorded
  bool is_unrecorded_ = false;
  bool replaces_ = false;
  base::UniqueFd record_file_;
};

/// Joins the job that the environment describes (OSHRUN_JOB_FD, OSHRUN_RANK, OSHRUN_SIZE).
Result<std::unique_ptr<Bootstrap>> join_local_job(std::chrono::milliseconds limit);
/// True if the environment describes such a job.
bool in_local_job();

}  // namespace shmem
