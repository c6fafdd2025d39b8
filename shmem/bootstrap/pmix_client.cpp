// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/pmix_client.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>

namespace shmem {

namespace {

constexpr const char* kLibrary = "libpmix.so.2";

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

Result<PmixCalls> load_pmix() {
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  PmixCalls calls{};
  const bool whole = library != nullptr && find(library, "PMIx_Init", calls.init) &&
                     find(library, "PMIx_Finalize", calls.finalize) && find(library, "PMIx_Put", calls.put) &&
                     find(library, "PMIx_Commit", calls.commit) && find(library, "PMIx_Fence", calls.fence) &&
                     find(library, "PMIx_Get", calls.get) && find(library, "PMIx_Abort", calls.abort) &&
                     find(library, "PMIx_Register_event_handler", calls.register_event_handler) &&
                     find(library, "PMIx_Deregister_event_handler", calls.deregister_event_handler) &&
                     find(library, "PMIx_Error_string", calls.error_string);
  if (whole) {
    return calls;
  }
  const char* why = ::dlerror();
  return fail(
      std::errc::not_supported,
      fmt::format("shmem: a PMIx launcher started this process, but {} cannot be used: {}; install it (Debian: "
                  "libpmix2), or start the job by oshrun, by a unique id, or with SHMEM_BOOTSTRAP=local as jobs "
                  "of one PE each",
                  kLibrary, why == nullptr ? "no reason given" : why));
}

namespace {

struct FreeValue {
  // libpmix allocates values by malloc; macros of its header free them.
  void operator()(pmix_value_t* value) const {
    if (value->type == PMIX_BYTE_OBJECT) {
      std::free(value->data.bo.bytes);  // NOLINT
    }
    std::free(value);  // NOLINT
  }
};
using Value = std::unique_ptr<pmix_value_t, FreeValue>;

pmix_info_t info(const char* key) {
  pmix_info_t made{};
  std::strncpy(made.key, key, sizeof(made.key) - 1);
  return made;
}

pmix_info_t flag(const char* key) {
  pmix_info_t made = info(key);
  made.value.type = PMIX_BOOL;
  made.value.data.flag = true;
  return made;
}

pmix_info_t seconds_limit(int seconds) {
  pmix_info_t made = info(PMIX_TIMEOUT);
  made.value.type = PMIX_INT;
  made.value.data.integer = seconds;
  return made;
}

struct Registered {
  pmix_status_t status;
  std::size_t id;
};
using Registering = std::promise<Registered>;
using Deregistering = std::promise<pmix_status_t>;

// Each callback owns its promise, so that the promise outlives set_value().
void registered(pmix_status_t status, std::size_t id, void* promise) {
  std::unique_ptr<Registering>(static_cast<Registering*>(promise))->set_value({status, id});
}
void deregistered(pmix_status_t status, void* promise) {
  std::unique_ptr<Deregistering>(static_cast<Deregistering*>(promise))->set_value(status);
}

}  // namespace

pmix_proc_t PmixClient::process(pmix_rank_t rank) const {
  pmix_proc_t made = self_;
  made.rank = rank;
  return made;
}

bool PmixClient::is_of_this_job(const pmix_proc_t& process) const {
  return std::strncmp(process.nspace, self_.nspace, sizeof(self_.nspace)) == 0;
}

std::string PmixClient::text(pmix_status_t status) const {
  const char* name = calls_.error_string(status);
  return fmt::format("{} ({})", name == nullptr ? "status" : name, status);
}

pmix_status_t PmixClient::job_size(std::uint32_t& size) const {
  const pmix_proc_t job = process(PMIX_RANK_WILDCARD);
  pmix_value_t* got = nullptr;
  const pmix_status_t status = calls_.get(&job, PMIX_JOB_SIZE, nullptr, 0, &got);
  if (status != PMIX_SUCCESS) {
    return status;
  }
  const Value value(got);
  if (value->type != PMIX_UINT32) {
    return PMIX_ERR_TYPE_MISMATCH;
  }
  size = value->data.uint32;
  return PMIX_SUCCESS;
}

pmix_status_t PmixClient::init(JobRank& place) {
  if (const auto status = calls_.init(&self_, nullptr, 0); status != PMIX_SUCCESS) {
    return status;
  }
  open_mpi_.init(calls_.init);
  std::uint32_t size = 0;
  auto status = job_size(size);
  if (status == PMIX_SUCCESS && (size > INT_MAX || self_.rank >= size)) {
    status = PMIX_ERR_BAD_PARAM;
  }
  if (status != PMIX_SUCCESS) {
    finalize();
    return status;
  }
  place = {static_cast<int>(self_.rank), static_cast<int>(size)};
  return PMIX_SUCCESS;
}

pmix_status_t PmixClient::finalize() const {
  open_mpi_.finalize(calls_.finalize);
  return calls_.finalize(nullptr, 0);
}

pmix_status_t PmixClient::put(const std::string& key, std::span<const std::byte> bytes) const {
  pmix_value_t value{};
  value.type = PMIX_BYTE_OBJECT;
  // libpmix copies the bytes.
  value.data.bo.bytes = const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));
  value.data.bo.size = bytes.size();
  return calls_.put(PMIX_GLOBAL, key.c_str(), &value);
}

pmix_status_t PmixClient::fence(bool collect, int seconds, int each) const {
  std::vector<pmix_proc_t> job;
  job.reserve(static_cast<std::size_t>(std::max(each, 1)));
  for (int rank = 0; rank < each; ++rank) {
    job.push_back(process(static_cast<pmix_rank_t>(rank)));
  }
  if (each == 0) {
    job.push_back(process(PMIX_RANK_WILDCARD));
  }
  const std::array<pmix_info_t, 2> how{seconds_limit(seconds), flag(PMIX_COLLECT_DATA)};
  return calls_.fence(job.data(), job.size(), how.data(), collect ? 2 : 1);
}

pmix_status_t PmixClient::get(int rank, const std::string& key, bool present, std::vector<std::byte>& bytes) const {
  const pmix_proc_t whose = process(static_cast<pmix_rank_t>(rank));
  const std::array<pmix_info_t, 2> how{flag(PMIX_IMMEDIATE), seconds_limit(1)};
  pmix_value_t* got = nullptr;
  const auto status = calls_.get(&whose, key.c_str(), how.data(), present ? how.size() : 0, &got);
  if (status != PMIX_SUCCESS) {
    return status;
  }
  const Value value(got);
  if (value->type != PMIX_BYTE_OBJECT) {
    return PMIX_ERR_TYPE_MISMATCH;
  }
  const auto* first = reinterpret_cast<const std::byte*>(value->data.bo.bytes);
  bytes.assign(first, first + value->data.bo.size);
  return PMIX_SUCCESS;
}

pmix_status_t PmixClient::abort(int status, const std::string& reason) const {
  return calls_.abort(status, reason.c_str(), nullptr, 0);
}

pmix_status_t PmixClient::listen(pmix_notification_fn_t handler, std::size_t& id) const {
  std::array<pmix_status_t, 7> events{PMIX_ERR_LOST_CONNECTION,      PMIX_ERR_PROC_REQUESTED_ABORT,
                                      PMIX_ERR_PROC_TERM_WO_SYNC,    PMIX_ERR_PROC_KILLED_BY_CMD,
                                      PMIX_ERR_PROC_ABORTED_BY_SIG,  PMIX_ERR_EXIT_NONZERO_TERM,
                                      static_cast<pmix_status_t>(-7)};  // PMIX_ERR_PROC_ABORTED, of before PMIx 4
  auto promise = std::make_unique<Registering>();
  auto outcome = promise->get_future();
  const auto status =
      calls_.register_event_handler(events.data(), events.size(), nullptr, 0, handler, registered, promise.get());
  if (status != PMIX_SUCCESS) {
    return status;
  }
  static_cast<void>(promise.release());
  const auto [given, number] = outcome.get();
  id = number;
  return given;
}

void PmixClient::unlisten(std::size_t id) const {
  auto promise = std::make_unique<Deregistering>();
  auto outcome = promise->get_future();
  if (calls_.deregister_event_handler(id, deregistered, promise.get()) != PMIX_SUCCESS) {
    return;
  }
  static_cast<void>(promise.release());
  outcome.wait();
}

}  // namespace shmem
