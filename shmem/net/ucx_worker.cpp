// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/ucx_worker.hpp"

#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <vector>

namespace shmem {

namespace {

struct Setting {
  const char* variable;
  const char* name;
  const char* value;
};
constexpr Setting kSettings[] = {
    // The network is for other nodes. What looks like one is the same machine in tests and in containers, and there
    // UCX would find shared memory.
    {"UCX_TLS", "TLS", "^sm"},
    // Processors and far PEs change the same words: what an adapter does on its own would not be atomic to processors.
    {"UCX_ATOMIC_MODE", "ATOMIC_MODE", "cpu"},
    // Else it waits for minutes, in the middle of any call, for a node whose firewall drops what comes. 1.13 knows the
    // option of a transport without the transport's name, later versions with it.
    {"UCX_TCP_CONN_NB", "CONN_NB", "y"},
    {"UCX_TCP_CONN_NB", "TCP_CONN_NB", "y"},
};

/// The names of the transports, "self" too, in what ucp_context_print_info() prints: "#    resource 2 : md 1 dev 2
/// flags -- tcp/lo".
std::vector<std::string> transports_of(const UcxCalls& calls, ucp_context_h context) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* stream = ::open_memstream(&text, &size);
  if (stream == nullptr) return {};
  calls.context_print_info(context, stream);
  std::fclose(stream);  // NOLINT(cppcoreguidelines-owning-memory): open_memstream()'s, as is the text
  std::istringstream lines(text);
  std::free(text);  // NOLINT(cppcoreguidelines-owning-memory)
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    const auto slash = line.rfind('/');
    const auto blank = line.rfind(' ', slash);
    if (line.find("resource") == std::string::npos || slash == std::string::npos || blank == std::string::npos)
      continue;
    const std::string name = line.substr(blank + 1, slash - blank - 1);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

}  // namespace

tl::unexpected<Error> ucx_failure(const UcxCalls& calls, ucs_status_t status, const std::string& what) {
  return fail(std::errc::io_error, what + ": UCX " + ucx_version(calls) + " says: " + calls.status_string(status));
}

Result<std::unique_ptr<UcxWorker>> UcxWorker::create(const UcxCalls& calls, std::size_t far_pes, bool threads) {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  calls.get_version(&major, &minor, &release);
  if (major != UCP_API_MAJOR || minor < UCP_API_MINOR) {
    return fail(std::errc::not_supported, "UCX is version " + ucx_version(calls) +
                                              " here, but this libshmem was built for " +
                                              std::to_string(UCP_API_MAJOR) + "." + std::to_string(UCP_API_MINOR) +
                                              ": install that on this node, or build libshmem for this version");
  }
  std::unique_ptr<UcxWorker> made(new UcxWorker(calls));
  if (auto done = made->make_context(far_pes); !done) return tl::make_unexpected(done.error());
  if (auto done = made->make_worker(threads); !done) return tl::make_unexpected(done.error());
  if (auto done = made->read_address(); !done) return tl::make_unexpected(done.error());
  if (auto done = made->read_transports(); !done) return tl::make_unexpected(done.error());
  return made;
}

Result<void> UcxWorker::read_transports() {
  const auto names = transports_of(calls_, context_);
  for (const std::string& name : names) {
    if (name != "self") transports_ += (transports_.empty() ? "" : ", ") + name;
  }
  if (names.empty() || !transports_.empty()) return {};
  return fail(std::errc::network_down,
              "UCX " + ucx_version(calls_) +
                  " finds no network device: is one up, and do UCX_TLS and UCX_NET_DEVICES let it be used?");
}

Result<void> UcxWorker::make_context(std::size_t far_pes) {
  ucp_config_t* config = nullptr;
  if (const auto read = calls_.config_read(nullptr, nullptr, &config); read != UCS_OK) {
    return ucx_failure(calls_, read, "UCX's configuration (the variables UCX_*, ucx.conf) cannot be read");
  }
  for (const Setting& setting : kSettings) {
    if (std::getenv(setting.variable) == nullptr) calls_.config_modify(config, setting.name, setting.value);
  }
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME;
  parameters.features =
      UCP_FEATURE_RMA | UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64 | UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  parameters.estimated_num_eps = far_pes;
  parameters.name = "libshmem";
  const auto made = calls_.init_version(UCP_API_MAJOR, UCP_API_MINOR, &parameters, config, &context_);
  calls_.config_release(config);
  if (made == UCS_OK) return {};
  context_ = nullptr;
  return ucx_failure(calls_, made,
                     "UCX cannot be started (is there a network device? do UCX_TLS and UCX_NET_DEVICES name what "
                     "`ucx_info -d` shows?)");
}

Result<void> UcxWorker::make_worker(bool threads) {
  ucp_worker_params_t parameters{};
  parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  parameters.thread_mode = threads ? UCS_THREAD_MODE_MULTI : UCS_THREAD_MODE_SERIALIZED;
  if (const auto made = calls_.worker_create(context_, &parameters, &worker_); made != UCS_OK) {
    worker_ = nullptr;
    return ucx_failure(calls_, made, "UCX's worker cannot be made");
  }
  ucp_worker_attr_t given{};
  given.field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE;
  if (const auto asked = calls_.worker_query(worker_, &given); asked != UCS_OK) {
    return ucx_failure(calls_, asked, "UCX does not say for how many threads its worker is");
  }
  if (threads && given.thread_mode != UCS_THREAD_MODE_MULTI) {
    return fail(std::errc::not_supported,
                "this UCX was built without threads (--enable-mt): ask for less than SHMEM_THREAD_MULTIPLE and no "
                "progress thread, or install a UCX with them");
  }
  if (const auto got = calls_.worker_get_efd(worker_, &event_fd_); got != UCS_OK) {
    return ucx_failure(calls_, got, "UCX gives nothing to sleep on");
  }
  return {};
}

Result<void> UcxWorker::read_address() {
  ucp_worker_attr_t own{};
  own.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS;
  if (const auto asked = calls_.worker_query(worker_, &own); asked != UCS_OK) {
    return ucx_failure(calls_, asked, "UCX does not say its address");
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(own.address);
  address_.assign(bytes, bytes + own.address_length);
  calls_.worker_release_address(worker_, own.address);
  return {};
}

UcxWorker::~UcxWorker() {
  if (worker_ != nullptr) calls_.worker_destroy(worker_);
  if (context_ != nullptr) calls_.cleanup(context_);
}

void UcxWorker::nap(std::chrono::nanoseconds longest) {
  if (calls_.worker_arm(worker_) != UCS_OK) return;  // there is something to progress
  const auto seconds = std::chrono::floor<std::chrono::seconds>(longest);
  const timespec time{seconds.count(), (longest - seconds).count()};
  pollfd events{event_fd_, POLLIN, 0};
  ::ppoll(&events, 1, &time, nullptr);
}

}  // namespace shmem
