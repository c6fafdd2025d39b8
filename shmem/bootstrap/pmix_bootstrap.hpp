// SPDX-License-Identifier: Apache-2.0
// The bootstrap through PMIx.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/bootstrap/pmix_client.hpp"
#include "shmem/bootstrap/pmix_events.hpp"

namespace shmem {

/// PE 0 reads what each PE has put, and all PEs read what PE 0 makes of it: a server of N processes answers 2 N
/// requests, not N * N. A call of libpmix that takes too long is given up. After a failed step, all later ones fail at
/// once with the same Error. Thread safety: see Bootstrap.
class PmixBootstrap final : public Bootstrap {
 public:
  struct Limits {
    std::chrono::milliseconds step = kBootstrapLimit;
    std::chrono::milliseconds grace = std::chrono::seconds(2);  // for the process to end when the launcher is gone
  };
  static Result<std::unique_ptr<PmixBootstrap>> join(const PmixCalls& calls, const Limits& limits);
  ~PmixBootstrap() override;

  [[nodiscard]] int rank() const override { return place_.rank; }
  [[nodiscard]] int size() const override { return place_.size; }
  Result<std::vector<std::byte>> allgather(std::span<const std::byte> mine) override;
  Result<void> barrier() override;
  int abort(int status, const std::string& reason) override;
  /// The launcher sees the status, and PMIx_Abort would end this process without its exit handlers.
  void announce_exit(int /*status*/, const std::string& /*reason*/) override {}
  /// PMIx_Abort would end all processes.
  void give_up_start(const std::string& reason) override { events_->end(reason); }
  [[nodiscard]] std::optional<std::string> aborted() const override { return events_->reason().get(); }
  [[nodiscard]] const std::atomic<std::uint32_t>* alarm() const override { return events_->reason().alarm(); }
  void leave() override;

 private:
  PmixBootstrap(std::shared_ptr<const PmixClient> client, PmixClient::JobRank place, const Limits& limits);

  /// The parts of all PEs in one step, as gathered by PE 0.
  Result<std::vector<std::byte>> exchange(std::span<const std::byte> part, std::size_t whole);
  /// Puts `bytes` under the key of a new step and waits until all PEs have done so.
  Result<void> put_and_fence(std::vector<std::byte> bytes, bool collect);
  /// Called by PE 0: the parts of all PEs in the last step.
  Result<std::vector<std::byte>> collect(std::size_t part, std::size_t whole);
  /// Reads what the first `pes` PEs have put in the last step.
  Result<std::vector<std::vector<std::byte>>> read(int pes);

  /// Calls libpmix, but gives up after the limit of a step, or when the job ends.
  template <typename Call>
  Result<std::invoke_result_t<Call>> ask(const char* what, Call call);
  /// The PEs that have not arrived in the last step, if libpmix can tell.
  [[nodiscard]] std::vector<int> missing() const;
  [[nodiscard]] Error timed_out(const char* what) const;
  Error give_up(Error error);
  [[nodiscard]] std::string key() const;

  const std::shared_ptr<const PmixClient> client_;
  const PmixClient::JobRank place_;
  const Limits limits_;
  const std::uint64_t joined_;  // counts joins of this process, because keys live as long as the process
  const pid_t owner_;
  std::unique_ptr<PmixEvents> events_;
  std::uint64_t step_ = 0;
  std::optional<Error> failure_;
  bool left_ = false;
};

}  // namespace shmem
