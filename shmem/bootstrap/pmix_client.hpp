// SPDX-License-Identifier: Apache-2.0
// libpmix with C++ types. libshmem does not link it: it is loaded when a PMIx launcher has started the process.
#pragma once

#include <pmix.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shmem/bootstrap/pmix_open_mpi.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// The calls of libpmix that libshmem makes. Tests replace them.
struct PmixCalls {
  decltype(&::PMIx_Init) init;
  decltype(&::PMIx_Finalize) finalize;
  decltype(&::PMIx_Put) put;
  decltype(&::PMIx_Commit) commit;
  decltype(&::PMIx_Fence) fence;
  decltype(&::PMIx_Get) get;
  decltype(&::PMIx_Abort) abort;
  decltype(&::PMIx_Register_event_handler) register_event_handler;
  decltype(&::PMIx_Deregister_event_handler) deregister_event_handler;
  decltype(&::PMIx_Error_string) error_string;
};

/// The calls of libpmix.so.2, which stays loaded from then on because it has threads.
Result<PmixCalls> load_pmix();

/// This process as its PMIx server knows it. The calls block without a limit. Thread-safe, except init(), which comes
/// first.
class PmixClient {
 public:
  explicit PmixClient(const PmixCalls& calls) : calls_(calls) {}

  /// This process's place in its job.
  struct JobRank {
    int rank = 0;
    int size = 0;
  };
  /// libpmix counts calls of init() and finalize().
  pmix_status_t init(JobRank& place);
  pmix_status_t finalize() const;

  /// After commit() and a fence(), all processes can get `bytes` under `key`.
  [[nodiscard]] pmix_status_t put(const std::string& key, std::span<const std::byte> bytes) const;
  [[nodiscard]] pmix_status_t commit() const { return calls_.commit(); }
  /// Returns when all processes of the job have called it, or after `seconds` if the server supports that. `collect`:
  /// the data that they have put is sent to this node. `each`: if not 0, the size of the job, and the server counts its
  /// processes by name.
  [[nodiscard]] pmix_status_t fence(bool collect, int seconds, int each) const;
  /// Gets what `rank` has put under `key`. `present`: only if the server already has it.
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
  PmixForOpenMpi open_mpi_;
};

}  // namespace shmem
