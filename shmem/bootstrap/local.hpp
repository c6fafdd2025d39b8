// SPDX-License-Identifier: Apache-2.0
// The bootstrap of PEs that oshrun started: they meet in the job memory they inherited.
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
  /// earlier step.
  static Result<std::unique_ptr<LocalBootstrap>> join(std::shared_ptr<const JobMemory> memory, int rank,
                                                      std::chrono::milliseconds limit = kBootstrapLimit);

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return memory_->pes(); }
  Result<std::vector<std::byte>> allgather(std::span<const std::byte> mine) override;
  Result<void> barrier() override;
  int abort(int status, const std::string& reason) override;
  [[nodiscard]] std::optional<std::string> aborted() const override;
  [[nodiscard]] const std::atomic<std::uint32_t>* alarm() const override { return &memory_->header().end.state; }
  void leave() override;

 private:
  LocalBootstrap(std::shared_ptr<const JobMemory> memory, int rank, std::chrono::milliseconds limit);

  /// One round: `part` of a collective of `whole` bytes goes to the others. Theirs can be read afterwards.
  Result<void> meet(std::span<const std::byte> part, std::size_t whole);
  [[nodiscard]] Result<void> await(std::uint64_t round) const;
  [[nodiscard]] Result<void> check_same(std::uint64_t round) const;
  [[nodiscard]] Error explain(std::errc why, std::uint64_t round) const;
  /// The others that have not arrived in `round`; of these only the dead ones if so wanted.
  [[nodiscard]] std::vector<int> missing(std::uint64_t round, bool only_dead) const;
  [[nodiscard]] const Offering& offering(int pe, std::uint64_t round) const;

  std::shared_ptr<const JobMemory> memory_;
  int rank_;
  std::chrono::milliseconds limit_;
  WaitPolicy policy_;
  std::optional<Error> failure_;
};

/// Joins the job that the environment names (OSHRUN_JOB_FD, OSHRUN_RANK, OSHRUN_SIZE). An Error if these make no sense.
Result<std::unique_ptr<Bootstrap>> join_local_job(std::chrono::milliseconds limit);
/// True if the environment names such a job.
bool in_local_job();

}  // namespace shmem
