// SPDX-License-Identifier: Apache-2.0
// libpmix with types of C++.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shmem/bootstrap/pmix_calls.hpp"

namespace shmem {

/// This process as its PMIx server knows it. The calls block, without a limit of their own. Thread safe, but for
/// init(), which comes first.
class PmixClient {
 public:
  explicit PmixClient(const PmixCalls& calls) : calls_(calls) {}

  /// Where this process is in its job.
  struct Place {
    int rank = 0;
    int size = 0;
  };
  /// libpmix counts these and finalize().
  pmix_status_t init(Place& place);
  pmix_status_t finalize() const { return calls_.finalize(nullptr, 0); }

  /// All others can see `bytes` under `key` after commit() and a fence().
  [[nodiscard]] pmix_status_t put(const std::string& key, std::span<const std::byte> bytes) const;
  [[nodiscard]] pmix_status_t commit() const { return calls_.commit(); }
  /// Returns when all processes of the job are in it, or, where the server can tell, after so many seconds. `collect`:
  /// what they have put comes to this node.
  [[nodiscard]] pmix_status_t fence(bool collect, int seconds) const;
  /// What `rank` has put under `key`. `present`: asks only for what the server has.
  pmix_status_t get(int rank, const std::string& key, bool present, std::vector<std::byte>& bytes) const;

  /// Ends the whole job.
  [[nodiscard]] pmix_status_t abort(int status, const std::string& reason) const;

  /// Until unlisten(id): `handler` is called, in a thread of libpmix, when the job loses one of its processes or this
  /// process its server.
  pmix_status_t listen(pmix_notification_fn_t handler, std::size_t& id) const;
  void unlisten(std::size_t id) const;

  [[nodiscard]] bool is_of_this_job(const pmix_proc_t& process) const;
  [[nodiscard]] std::string text(pmix_status_t status) const;

 private:
  [[nodiscard]] pmix_proc_t process(pmix_rank_t rank) const;
  pmix_status_t job_size(std::uint32_t& size) const;

  PmixCalls calls_;
  pmix_proc_t self_{};
};

}  // namespace shmem
