// SPDX-License-Identifier: Apache-2.0
// Starting with attributes.
#include <algorithm>
#include <cstring>

#include "shmem/api/entry.hpp"
#include "shmem/config/config_file.hpp"
#include "shmem/config/log.hpp"

using shmem::BootstrapKind;
using shmem::Error;
using shmem::Result;
using shmem::Runtime;
namespace api = shmem::api;

namespace {

Error invalid(const std::string& call, const std::string& problem) {
  return shmem::fail(std::errc::invalid_argument, fmt::format("shmem: {}: {}", call, problem));
}

Result<void> check_pes(const char* call, int my_pe, int n_pes) {
  if (n_pes < 1 || n_pes > SHMEMX_MAX_PES) {
    return invalid(call, fmt::format("n_pes is {}, not 1 to {}", n_pes, SHMEMX_MAX_PES));
  }
  if (my_pe < 0 || my_pe >= n_pes) {
    return invalid(call, fmt::format("my_pe is {}, not 0 to n_pes - 1 = {}", my_pe, n_pes - 1));
  }
  return {};
}

Result<shmem::UniqueId> id_of(const shmemx_uniqueid_t* uid, const std::string& folder) {
  if (uid == nullptr) {
    return invalid("shmemx_init_attr", "comm_args is NULL, not the unique id");
  }
  if (uid->version != SHMEMX_UNIQUEID_VERSION) {
    return invalid("shmemx_init_attr",
                   fmt::format("the unique id has version {}; was it sent to all PEs as shmemx_get_uniqueid gave it?",
                               uid->version));
  }
  shmem::UniqueIdBytes bytes{};
  std::memcpy(bytes.data(), uid->internal, bytes.size());
  return shmem::unpack(bytes, folder);
}

/// Environment and attributes together.
struct Start {
  shmem::Options options;
  std::optional<shmem::UniqueId> id;
  const void* communicator = nullptr;
  std::optional<shmem::BootstrapRequest::JobRank> expected;
};

Result<void> take_attributes(const shmemx_init_attr_t& attr, Start& start) {
  constexpr const char* kCall = "shmemx_init_attr";
  if (attr.version != SHMEMX_INIT_ATTR_VERSION) {
    return invalid(kCall,
                   fmt::format("attr->version is {}; attr was not set to SHMEMX_INIT_ATTR_INITIALIZER", attr.version));
  }
  if (std::find(std::begin(attr.ip_port), std::end(attr.ip_port), '\0') == std::end(attr.ip_port)) {
    return invalid(kCall, "attr->ip_port has no terminating null byte");
  }
  shmem::Options& options = start.options;
  if (attr.local_mem_size != 0) {
    options.symmetric_size = attr.local_mem_size;
  }
  if (attr.shm_init_timeout != 0) {
    options.bootstrap_timeout = std::chrono::seconds(attr.shm_init_timeout);
  }
  if (attr.control_operation_timeout != 0) {
    options.barrier_timeout = std::chrono::seconds(attr.control_operation_timeout);
  }
  if (attr.n_pes != 0) {
    start.expected = {attr.my_pe, attr.n_pes};
  }
  return {};
}

Result<void> start_by_uid(const shmemx_init_attr_t& attr, bool by_session, Start& start) {
  if (auto ok = check_pes("shmemx_init_attr", attr.my_pe, attr.n_pes); !ok) {
    return ok;
  }
  start.options.bootstrap = BootstrapKind::kUid;
  start.options.uid_rank = attr.my_pe;
  start.options.uid_size = attr.n_pes;
  if (by_session) {
    start.options.uid_session_id = attr.ip_port;
    return {};
  }
  auto id = id_of(static_cast<const shmemx_uniqueid_t*>(attr.comm_args), start.options.job_folder());
  if (!id) {
    return id.error();
  }
  start.id = *id;
  return {};
}

Result<void> choose(unsigned int flags, const shmemx_init_attr_t& attr, Start& start) {
  switch (flags) {
    case SHMEMX_INIT_WITH_DEFAULT:
      if (attr.ip_port[0] != '\0' || attr.comm_args != nullptr) {
        return start_by_uid(attr, attr.ip_port[0] != '\0', start);
      }
      return {};
    case SHMEMX_INIT_WITH_MPI:
      start.options.bootstrap = BootstrapKind::kMpi;
      start.communicator = attr.comm_args;
      return {};
    case SHMEMX_INIT_WITH_UNIQUEID:
      return start_by_uid(attr, false, start);
    default:
      return invalid("shmemx_init_attr",
                     fmt::format("flags are {}, not one of SHMEMX_INIT_WITH_DEFAULT, _MPI and _UNIQUEID", flags));
  }
}

Result<void> init(unsigned int flags, const shmemx_init_attr_t* attr) {
  if (Runtime::current() != nullptr) {
    return shmem::fail(std::errc::connection_already_in_progress,
                       "shmem: shmemx_init_attr: the library runs already; shmem_finalize ends it");
  }
  if (attr == nullptr && flags != SHMEMX_INIT_WITH_DEFAULT) {
    return invalid("shmemx_init_attr", "attr is NULL");
  }
  auto options = shmem::process_options();
  if (!options) {
    return options.error();
  }
  Start start{*std::move(options), {}, nullptr, {}};
  const shmemx_init_attr_t given = attr != nullptr ? *attr : shmemx_init_attr_t SHMEMX_INIT_ATTR_INITIALIZER;
  if (auto ok = take_attributes(given, start); !ok) {
    return ok;
  }
  if (auto ok = choose(flags, given, start); !ok) {
    return ok;
  }
  auto request = shmem::bootstrap_request(start.options);
  request.communicator = start.communicator;
  request.expected = start.expected;
  request.id = start.id;
  if (start.id) {
    request.listener = Runtime::take_listener(*start.id);
  }
  // Streams are threads, and work given to them may call the library.
  return Runtime::start(SHMEM_THREAD_MULTIPLE, std::move(start.options), std::move(request));
}

Result<void> get_uniqueid(shmemx_uniqueid_t* uid) {
  if (uid == nullptr) {
    return invalid("shmemx_get_uniqueid", "uid is NULL");
  }
  *uid = SHMEMX_UNIQUEID_INITIALIZER;
  auto options = shmem::process_options();
  if (!options) {
    return options.error();
  }
  auto listener = shmem::open_listener(shmem::bootstrap_request(*options).uid);
  if (!listener) {
    return listener.error();
  }
  const auto bytes = shmem::pack(listener->id);
  std::memcpy(uid->internal, bytes.data(), bytes.size());
  if (options->debug) {
    shmem::log(shmem::LogLevel::kDebug, "shmem: listening for a job at %s (%s)", listener->id.place.text().c_str(),
               listener->how.c_str());
  }
  Runtime::keep(*std::move(listener));
  return {};
}

Result<void> set_uniqueid_args(int my_pe, int n_pes, std::int64_t size, shmemx_uniqueid_t* uid,
                               shmemx_init_attr_t* attr) {
  constexpr const char* kCall = "shmemx_set_attr_uniqueid_args";
  if (uid == nullptr || attr == nullptr) {
    return invalid(kCall, uid == nullptr ? "uid is NULL" : "attr is NULL");
  }
  if (auto ok = check_pes(kCall, my_pe, n_pes); !ok) {
    return ok;
  }
  if (size < 0) {
    return invalid(kCall, fmt::format("local_mem_size is {}", size));
  }
  *attr = SHMEMX_INIT_ATTR_INITIALIZER;
  attr->my_pe = my_pe;
  attr->n_pes = n_pes;
  attr->local_mem_size = static_cast<std::uint64_t>(size);
  attr->comm_args = uid;
  return {};
}

}  // namespace

extern "C" {

int shmemx_init_status() noexcept {
  return Runtime::is_initialized() ? SHMEMX_STATUS_IS_INITIALIZED : SHMEMX_STATUS_NOT_INITIALIZED;
}

int shmemx_get_uniqueid(shmemx_uniqueid_t* uid) noexcept try { return api::code_of(get_uniqueid(uid)); }
SHMEM_CATCH(int)

int shmemx_set_attr_uniqueid_args(int my_pe, int n_pes, int64_t local_mem_size, shmemx_uniqueid_t* uid,
                                  shmemx_init_attr_t* attr) noexcept try {
  return api::code_of(set_uniqueid_args(my_pe, n_pes, local_mem_size, uid, attr));
}
SHMEM_CATCH(int)

int shmemx_init_attr(unsigned int flags, const shmemx_init_attr_t* attr) noexcept try {
  return api::code_of(init(flags, attr));
}
SHMEM_CATCH(int)
}
