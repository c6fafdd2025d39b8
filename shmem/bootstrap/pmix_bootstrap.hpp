// SPDX-License-Identifier: Apache-2.0
// How PEs meet through PMIx.
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

/// PE 0 reads what each PE has put, and all read what PE 0 makes of it: a server of N processes answers 2 N questions,
/// not N * N. Every call of libpmix is given up when it takes too long. Once a step has failed, all later ones fail at
/// once with the same Error. Thread safety: see Bootstrap.
class PmixBootstrap final : public Bootstrap {
 public:
  struct Limits {
    std::chrono::milliseconds step = kBootstrapLimit;
    std::chrono::milliseconds grace = std::chrono::seconds(2);  // to end by itself when the launcher is gone
  };
  static Result<std::unique_ptr<PmixBootstrap>> join(const PmixCalls& calls, const Limits& limits);
  ~PmixBootstrap() override;

  [[nodiscard]] int rank() const override { return place_.rank; }
  [[nodiscard]] int size() const override { return place_.size; }
  Result<std::vector<std::byte>> allgather(std::span<const std::byte> mine) override;
  Result<void> barrier() override;
  int abort(int status, const std::string& reason) override;
  [[nodiscard]] std::optional<std::string> aborted() const override;
  [[nodiscard]] const std::atomic<std::uint32_t>* alarm() const override { return events_->alarm(); }
  void leave() override;

 private:
  PmixBootstrap(std::shared_ptr<const PmixClient> client, PmixClient::Place place, const Limits& limits);

  /// What all PEs say in one step, as PE 0 has put it together.
  Result<std::vector<std::byte>> exchange(std::span<const std::byte> part, std::size_t whole);
  /// Puts `bytes` under the name of a new step and waits until all PEs have done so.
  Result<void> meet(std::vector<std::byte> bytes, bool collect);
  /// What PE 0 tells the others: everybody's part of the last step, or why there is none.
  std::vector<std::byte> collect(std::size_t part, std::size_t whole);
  /// What the first `pes` PEs have put in the last step.
  Result<std::vector<std::vector<std::byte>>> read(int pes);

  /// The outcome of a call of libpmix that is given up after the limit of a step, or when the job ends.
  template <typename Call>
  Result<std::invoke_result_t<Call>> ask(const char* what, Call call);
  /// PEs that have not come to the last step, if libpmix can tell.
  [[nodiscard]] std::vector<int> missing() const;
  [[nodiscard]] Error nobody_came(const char* what) const;
  tl::unexpected<Error> give_up(Error error);
  [[nodiscard]] std::string key() const;

  const std::shared_ptr<const PmixClient> client_;
  const PmixClient::Place place_;
  const Limits limits_;
  const std::uint64_t joined_;  // the how manieth of this process: keys live as long as that
  const pid_t owner_;
  std::unique_ptr<PmixEvents> events_;
  std::uint64_t step_ = 0;
  std::optional<Error> failure_;
  bool left_ = false;
};

}  // namespace shmem
