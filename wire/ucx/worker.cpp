// SPDX-License-Identifier: Apache-2.0
#include "wire/ucx/worker.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <sstream>
#include <thread>
#include <utility>

#include "base/helper_thread.hpp"
#include "base/signals_blocked.hpp"

namespace wire {

namespace {

struct UcxOption {
  const char* variable;
  const char* name;
  const char* value;
};
constexpr const char* kTransports = "UCX_TLS";
constexpr UcxOption kTransportsWithoutTcp{kTransports, "TLS", "^sm,tcp"};
/// The newer implementation of operations, UCX's default since 1.16: in 1.18 it cancels the atomic operations that
/// processors execute (UCX_ATOMIC_MODE=cpu).
constexpr UcxOption kProtocols{"UCX_PROTO_ENABLE", "PROTO_ENABLE", "n"};
/// 1.this executes no atomic operations by processors: the newer implementation still cancels them, and the older one
/// refuses them. From there on, requests carry out all operations.
constexpr unsigned kFirstWithoutAtomics = 23;
/// Large messages without memory keys, if the one-sided operations are carried out over TCP. TCP registers no memory,
/// so UCX makes no cache of registrations. UCX 1.18 uses that cache nevertheless (in ucs_rcache_region_invalidate())
/// when a message that carries a key has not yet left for a PE that is lost, and SIGSEGV ends the process. With an RDMA
/// adapter there is a cache.
constexpr UcxOption kRendezvous{"UCX_RNDV_SCHEME", "RNDV_SCHEME", "am"};
constexpr UcxOption kSettings[] = {
    // The network is for other nodes. In tests and containers, "another node" may be on this machine, and UCX would use
    // shared memory.
    {kTransports, "TLS", "^sm"},
    // Processors and remote PEs change the same words: an adapter's own operations are not atomic to processors.
    {"UCX_ATOMIC_MODE", "ATOMIC_MODE", "cpu"},
    // Without it, any call may wait minutes for a node whose firewall drops packets. UCX 1.13 knows the option without
    // the transport's name, later versions with it.
    {"UCX_TCP_CONN_NB", "CONN_NB", "y"},
    {"UCX_TCP_CONN_NB", "TCP_CONN_NB", "y"},
    // One path for all eager messages to a PE: requests are served in the order in which they were sent.
    {"UCX_MAX_EAGER_RAILS", "MAX_EAGER_RAILS", "1"},
    {"UCX_MAX_EAGER_LANES", "MAX_EAGER_LANES", "1"},
};

/// Variables of UCX to which users may give one value only. ucx.conf needs no such check: kSettings has precedence.
struct UcxDemand {
  const char* variable = nullptr;
  const char* value = nullptr;
  const char* why = nullptr;
  unsigned since = 0;  // UCX 1.this
};
/// Without an adapter, or with one and UCX 1.23, requests carry out all operations.
constexpr UcxDemand kDemandsOfRequests[] = {
    {"UCX_MAX_EAGER_RAILS", "1", "lets messages overtake each other, and libshmem needs their order here"},
    {"UCX_MAX_EAGER_LANES", "1", "lets messages overtake each other, and libshmem needs their order here"},
};
constexpr UcxDemand kDemandsOfAdapters[] = {
    {"UCX_ATOMIC_MODE", "cpu",
     "lets the adapter change a word while a processor changes it, and one of the two changes may get lost"},
    {"UCX_PROTO_ENABLE", "n", "makes this version of UCX cancel atomic operations", 16},
};
constexpr UcxDemand kDemandsOfAdaptersOverTcp[] = {
    {"UCX_RNDV_SCHEME", "am", "lets this version of UCX crash when a PE that large messages go to is lost", 16},
};

/// UCX 1.this
unsigned minor_version(const UcxCalls& calls) {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  calls.get_version(&major, &minor, &release);
  return minor;
}

Result<void> check_demands(const UcxCalls& calls, std::span<const UcxDemand> demands) {
  const unsigned minor = minor_version(calls);
  for (const UcxDemand& demand : demands) {
    const char* value = std::getenv(demand.variable);
    if (value != nullptr && std::string(value) != demand.value && minor >= demand.since) {
      return fail(std::errc::invalid_argument,
                  fmt::format("{}={} {}: unset it, or set it to {}", demand.variable, value, demand.why, demand.value));
    }
  }
  return {};
}

/// The names of the transports, "self" too, in what ucp_context_print_info() prints: "#    resource 2 : md 1 dev 2
/// flags -- tcp/lo".
std::vector<std::string> transports_of(const UcxCalls& calls, ucp_context_h context) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* stream = ::open_memstream(&text, &size);
  if (stream == nullptr) {
    return {};
  }
  calls.context_print_info(context, stream);
  std::fclose(stream);  // NOLINT(cppcoreguidelines-owning-memory): open_memstream()'s, as is the text
  const std::unique_ptr<char, decltype(&std::free)> owner(text, &std::free);
  std::istringstream lines(text);
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    const auto slash = line.rfind('/');
    const auto blank = line.rfind(' ', slash);
    if (line.find("resource") == std::string::npos || slash == std::string::npos || blank == std::string::npos) {
      continue;
    }
    const std::string name = line.substr(blank + 1, slash - blank - 1);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  }
  return names;
}

}  // namespace

Result<void> check_ucx_threads() {
  // Two at once: UCX's and that of the library's own progress.
  std::array<base::HelperThread, 2> threads;
  for (base::HelperThread& thread : threads) {
    auto started = base::HelperThread::start([] { std::this_thread::sleep_for(std::chrono::milliseconds{1}); });
    if (!started) {
      return fail(
          started.error().code,
          fmt::format("UCX needs threads, and none can be started: {}; raise the limit on processes (ulimit -u) "
                      "or that of the control group (pids.max)",
                      started.error().text));
    }
    thread = *std::move(started);
  }
  return {};
}

ucs_status_t UcxWorker::connect(std::span<const std::byte> address, ucp_err_handler_cb_t failed, void* argument,
                                ucp_ep_h& endpoint) const {
  ucp_ep_params_t parameters{};
  parameters.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  parameters.err_handler.cb = failed;
  parameters.err_handler.arg = argument;
  endpoint = nullptr;
  const auto made = calls_.ep_create(worker_, &parameters, &endpoint);
  endpoint = made == UCS_OK ? endpoint : nullptr;
  return made;
}

Error ucx_failure(const UcxCalls& calls, ucs_status_t status, const std::string& what) {
  return fail(std::errc::io_error,
              fmt::format("{}: UCX {} says: {}", what, ucx_version(calls), calls.status_string(status)));
}

Result<std::unique_ptr<UcxWorker>> UcxWorker::create(const UcxCalls& calls, std::size_t remote_pes, bool direct,
                                                     bool rdma_only) {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  calls.get_version(&major, &minor, &release);
  if (major != UCP_API_MAJOR || minor < UCP_API_MINOR) {
    return fail(std::errc::not_supported, fmt::format("UCX is version {} here, but this libshmem was built for {}.{}: "
                                                      "install that on this node, or build libshmem for this version",
                                                      ucx_version(calls), UCP_API_MAJOR, UCP_API_MINOR));
  }
  const base::SignalsBlocked blocked;  // for UCX's thread
  std::unique_ptr<UcxWorker> made(new UcxWorker(calls));
  if (auto done = made->make_context(remote_pes); !done) {
    return done.error();
  }
  if (auto done = made->choose_operations(remote_pes, direct, rdma_only); !done) {
    return done.error();
  }
  if (auto done = made->make_worker(); !done) {
    return done.error();
  }
  if (auto done = made->read_address(); !done) {
    return done.error();
  }
  return made;
}

Result<void> UcxWorker::choose_operations(std::size_t remote_pes, bool direct, bool rdma_only) {
  if (auto done = read_transports(); !done) {
    return done;
  }
  if (auto good = rdma_only ? check_rdma() : Result<void>(); !good) {
    return good;
  }
  one_sided_ = (direct || transports_ != "tcp") && minor_version(calls_) < kFirstWithoutAtomics;
  without_tcp_ = rdma_only;
  auto good = check_demands(calls_, one_sided_ ? std::span<const UcxDemand>(kDemandsOfAdapters) : kDemandsOfRequests);
  if (good && one_sided_ && transports_ == "tcp") {
    good = check_demands(calls_, kDemandsOfAdaptersOverTcp);
  }
  if (!good || (!one_sided_ && !without_tcp_)) {
    return good;
  }
  end_context();
  if (auto done = make_context(remote_pes); !done) {
    return done;
  }
  return read_transports();
}

Result<void> UcxWorker::read_transports() {
  const auto names = transports_of(calls_, context_);
  transports_.clear();
  for (const std::string& name : names) {
    if (name != "self") {
      transports_ += (transports_.empty() ? "" : ", ") + name;
    }
  }
  if (names.empty() || !transports_.empty()) {
    return {};
  }
  return fail(
      std::errc::network_down,
      fmt::format("UCX {} finds no network device: is one up, and do UCX_TLS and UCX_NET_DEVICES let it be used?",
                  ucx_version(calls_)));
}

Result<void> UcxWorker::check_rdma() const {
  if (transports_ == "tcp") {
    return fail(std::errc::network_down,
                fmt::format("SHMEM_NETWORK_REQUIRE=rdma, but UCX {} would use tcp between nodes, because it finds no "
                            "adapter for RDMA: is one there and its port up (ibv_devinfo), may this process use it "
                            "(ulimit -l), and do UCX_TLS and UCX_NET_DEVICES allow it (ucx_info -d)? "
                            "SHMEM_NETWORK_REQUIRE=any allows TCP",
                            ucx_version(calls_)));
  }
  const char* chosen = std::getenv(kTransports);
  if (chosen != nullptr && (", " + transports_ + ",").find(", tcp,") != std::string::npos) {
    return fail(std::errc::invalid_argument,
                fmt::format("SHMEM_NETWORK_REQUIRE=rdma, but with UCX_TLS={} UCX {} may use tcp between nodes (it has "
                            "{}): leave tcp out of UCX_TLS, or set SHMEM_NETWORK_REQUIRE=any",
                            chosen, ucx_version(calls_), transports_));
  }
  return {};
}

Result<void> UcxWorker::make_context(std::size_t remote_pes) {
  ucp_config_t* config = nullptr;
  if (const auto read = calls_.config_read(nullptr, nullptr, &config); read != UCS_OK) {
    return ucx_failure(calls_, read, "UCX's configuration (the variables UCX_*, ucx.conf) cannot be read");
  }
  const auto choose = [&](const UcxOption& option) {
    if (std::getenv(option.variable) == nullptr) {
      calls_.config_modify(config, option.name, option.value);
    }
  };
  std::ranges::for_each(kSettings, choose);
  if (one_sided_) {
    choose(kProtocols);
  }
  if (one_sided_ && transports_ == "tcp") {
    choose(kRendezvous);
  }
  if (without_tcp_) {
    choose(kTransportsWithoutTcp);
  }
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME;
  parameters.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  if (one_sided_) {
    parameters.features |= UCP_FEATURE_RMA | UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64;
  }
  parameters.estimated_num_eps = remote_pes;
  parameters.name = "libshmem";
  const auto made = calls_.init_version(UCP_API_MAJOR, UCP_API_MINOR, &parameters, config, &context_);
  calls_.config_release(config);
  if (made == UCS_OK) {
    return {};
  }
  context_ = nullptr;
  return ucx_failure(calls_, made,
                     "UCX cannot be started (is there a network device? do UCX_TLS and UCX_NET_DEVICES name what "
                     "`ucx_info -d` shows?)");
}

Result<void> UcxWorker::make_worker() {
  ucp_worker_params_t parameters{};
  parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  parameters.thread_mode = UCS_THREAD_MODE_MULTI;
  if (const auto made = calls_.worker_create(context_, &parameters, &worker_); made != UCS_OK) {
    worker_ = nullptr;
    return ucx_failure(calls_, made, "UCX's worker cannot be made");
  }
  ucp_worker_attr_t given{};
  given.field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE;
  if (const auto asked = calls_.worker_query(worker_, &given); asked != UCS_OK) {
    return ucx_failure(calls_, asked, "UCX does not tell the thread mode of its worker");
  }
  if (given.thread_mode != UCS_THREAD_MODE_MULTI) {
    return fail(std::errc::not_supported,
                "this UCX was built without thread support: install one that was configured with --enable-mt");
  }
  if (const auto got = calls_.worker_get_efd(worker_, &event_fd_); got != UCS_OK) {
    return ucx_failure(calls_, got, "UCX gives no file descriptor to sleep on");
  }
  connections_ = base::PrivateEpoll(event_fd_);
  return {};
}

Result<void> UcxWorker::read_address() {
  ucp_worker_attr_t own{};
  own.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS;
  if (const auto asked = calls_.worker_query(worker_, &own); asked != UCS_OK) {
    return ucx_failure(calls_, asked, "UCX does not tell its address");
  }
  const auto release = [this](ucp_address_t* address) { calls_.worker_release_address(worker_, address); };
  const std::unique_ptr<ucp_address_t, decltype(release)> address(own.address, release);
  const auto* bytes = reinterpret_cast<const std::byte*>(address.get());
  address_.assign(bytes, bytes + own.address_length);
  return {};
}

UcxWorker::~UcxWorker() {
  connections_ = {};
  if (worker_ != nullptr) {
    calls_.worker_destroy(worker_);
  }
  end_context();
}

void UcxWorker::end_context() {
  if (context_ != nullptr) {
    calls_.cleanup(std::exchange(context_, nullptr));
  }
}

void* UcxWorker::close(ucp_ep_h endpoint, bool force) const {
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = force ? UCP_EP_CLOSE_FLAG_FORCE : 0;
  void* const request = calls_.ep_close_nbx(endpoint, &parameters);
  return UCS_PTR_IS_PTR(request) ? request : nullptr;
}

void UcxWorker::finish(void* request, std::chrono::steady_clock::time_point deadline) {
  if (!UCS_PTR_IS_PTR(request)) {
    return;
  }
  while (calls_.request_check_status(request) == UCS_INPROGRESS && std::chrono::steady_clock::now() < deadline) {
    if (!progress()) {
      sleep(std::chrono::milliseconds{1});
    }
  }
  calls_.request_free(request);
}

void UcxWorker::keep_connections_here() {
  constexpr std::chrono::seconds kEach{1};
  const auto now = std::chrono::steady_clock::now();
  auto next = next_look_.load(std::memory_order_relaxed);
  // Relaxed: it only chooses the thread.
  if (now.time_since_epoch().count() >= next &&
      next_look_.compare_exchange_strong(next, (now + kEach).time_since_epoch().count(), std::memory_order_relaxed)) {
    connections_.close_on_exec();
  }
}

void UcxWorker::await_event(std::chrono::nanoseconds longest, int other_event) {
  keep_connections_here();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(longest);
  const timespec time{seconds.count(), (longest - seconds).count()};
  std::array<pollfd, 2> events{pollfd{event_fd_, POLLIN, 0}, pollfd{other_event, POLLIN, 0}};
  ::ppoll(events.data(), events.size(), &time, nullptr);  // ignores -1
}

// The first sleeper alone consumes the signal. With others asleep, or about to be, it may be theirs: then it stays, and
// ends the sleeps of all of them, until none is left.
void UcxSleepers::enter() {
  const std::lock_guard lock(mutex_);
  if (count_.fetch_add(1, std::memory_order_acq_rel) == 0 && signalled_) {
    eventfd_t signals = 0;
    ::eventfd_read(event_.get(), &signals);
    signalled_ = false;
  }
}

void UcxSleepers::signal() {
  const std::lock_guard lock(mutex_);
  if (!signalled_) {
    ::eventfd_write(event_.get(), 1);
    signalled_ = true;
  }
}

void receive_by(const UcxWorker& worker, unsigned number, ucp_am_recv_callback_t callback, void* argument) {
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = number;
  handler.cb = callback;
  handler.arg = argument;
  worker.calls().worker_set_am_recv_handler(worker.worker(), &handler);
}

}  // namespace wire
