// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/metrics_server.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/helper_thread.hpp"
#include "base/private_fd.hpp"
#include "wire/endpoint.hpp"

namespace shmem::exchange {
namespace {

constexpr const char* kLibrary = "libmicrohttpd.so.12";
constexpr const char* kContentType = "application/openmetrics-text; version=1.0.0; charset=utf-8";
// A client that asks for nothing, or takes no answer, loses its connection.
constexpr unsigned kMostConnections = 32;
constexpr unsigned kIdleSeconds = 5;
constexpr std::size_t kConnectionBytes = std::size_t{16} << 10;
/// Between two turns. Without a descriptor for a client that waits, the library would be told of it again at once.
constexpr int kPauseMs = 5;
/// After a lack of descriptors the library looks for clients in its turns only, so that there must be some.
constexpr MHD_UNSIGNED_LONG_LONG kLongestWaitMs = 1000;

/// What is called of libmicrohttpd.
struct Calls {
  decltype(&::MHD_start_daemon) start_daemon;
  decltype(&::MHD_quiesce_daemon) quiesce_daemon;
  decltype(&::MHD_stop_daemon) stop_daemon;
  decltype(&::MHD_get_daemon_info) get_daemon_info;
  decltype(&::MHD_get_timeout) get_timeout;
  decltype(&::MHD_run) run;
  decltype(&::MHD_create_response_from_buffer) create_response;
  decltype(&::MHD_add_response_header) add_header;
  decltype(&::MHD_queue_response) queue_response;
  decltype(&::MHD_destroy_response) destroy_response;
};

template <typename Function>
bool find_call(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

/// The library stays loaded.
Result<Calls> load_microhttpd() {
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  Calls calls{};
  if (library != nullptr && find_call(library, "MHD_start_daemon", calls.start_daemon) &&
      find_call(library, "MHD_quiesce_daemon", calls.quiesce_daemon) &&
      find_call(library, "MHD_stop_daemon", calls.stop_daemon) &&
      find_call(library, "MHD_get_daemon_info", calls.get_daemon_info) &&
      find_call(library, "MHD_get_timeout", calls.get_timeout) && find_call(library, "MHD_run", calls.run) &&
      find_call(library, "MHD_create_response_from_buffer", calls.create_response) &&
      find_call(library, "MHD_add_response_header", calls.add_header) &&
      find_call(library, "MHD_queue_response", calls.queue_response) &&
      find_call(library, "MHD_destroy_response", calls.destroy_response)) {
    return calls;
  }
  const char* const why = ::dlerror();
  return fail(std::errc::operation_not_supported,
              fmt::format("cannot answer requests for metrics, since {} cannot be used: {}; install it "
                          "(Debian: libmicrohttpd12), or do without metrics",
                          kLibrary, why == nullptr ? "no reason given" : why));
}

/// A thread of its own, and not the library's, runs the library. MHD_stop_daemon() while the library's thread reads a
/// wrong request ends the process: version 0.9.75 then takes the answer that it did not make.
class HttpServer final : public MetricsServer {
 public:
  HttpServer(const Calls& calls, Page page, std::uint16_t port, base::UniqueFd stop)
      : calls_(calls), page_(std::move(page)), port_(port), stop_(std::move(stop)) {}
  ~HttpServer() override {
    ::eventfd_write(stop_.get(), 1);
    thread_.join();
    if (daemon_ != nullptr) {
      clients_ = base::PrivateEpoll();
      calls_.quiesce_daemon(daemon_);  // gives listener_ back
      calls_.stop_daemon(daemon_);     // ends the connections
    }
  }

  Result<void> serve(base::UniqueFd socket) {
    daemon_ =
        calls_.start_daemon(MHD_USE_EPOLL, 0, nullptr, nullptr, &answer, this, MHD_OPTION_LISTEN_SOCKET, socket.get(),
                            MHD_OPTION_CONNECTION_LIMIT, kMostConnections, MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes, MHD_OPTION_END);
    if (daemon_ == nullptr) {
      return fail(std::errc::resource_unavailable_try_again, "libmicrohttpd cannot answer requests for metrics");
    }
    listener_ = base::PrivateFd(std::move(socket));
    clients_ = base::PrivateEpoll(epoll());
    auto thread = base::HelperThread::start([this] { run(); });
    if (!thread) {
      return thread.error();
    }
    thread_ = *std::move(thread);
    return {};
  }
  [[nodiscard]] std::uint16_t port() const override { return port_; }

 private:
  [[nodiscard]] int epoll() const { return calls_.get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd; }

  void run() {
    std::array<pollfd, 2> waiting{pollfd{.fd = stop_.get(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = epoll(), .events = POLLIN, .revents = 0}};
    while (waiting[0].revents == 0) {
      calls_.run(daemon_);
      MHD_UNSIGNED_LONG_LONG limit_ms = 0;
      const bool limited = calls_.get_timeout(daemon_, &limit_ms) == MHD_YES;
      ::poll(waiting.data(), waiting.size(),
             static_cast<int>(std::min(limited ? limit_ms : kLongestWaitMs, kLongestWaitMs)));
      if (waiting[0].revents == 0) {
        ::poll(waiting.data(), 1, kPauseMs);
      }
    }
  }

  static MHD_Result answer(void* server, MHD_Connection* connection, const char* url, const char* method,
                           const char* /*version*/, const char* /*upload*/, std::size_t* /*upload_bytes*/,
                           void** /*request*/) noexcept try {
    const auto& here = *static_cast<const HttpServer*>(server);
    const std::string_view asked = method;
    if (asked != MHD_HTTP_METHOD_GET && asked != MHD_HTTP_METHOD_HEAD) {
      return here.reply(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", "Only GET and HEAD are answered.\n");
    }
    return std::string_view(url) == "/metrics"
               ? here.reply(connection, MHD_HTTP_OK, kContentType, here.page_())
               : here.reply(connection, MHD_HTTP_NOT_FOUND, "text/plain", "The metrics are at /metrics.\n");
  } catch (...) {
    return MHD_NO;  // no memory: the connection ends
  }

  MHD_Result reply(MHD_Connection* connection, unsigned status, const char* type, std::string text) const {
    MHD_Response* const response = calls_.create_response(text.size(), text.data(), MHD_RESPMEM_MUST_COPY);
    if (response == nullptr) {
      return MHD_NO;
    }
    calls_.add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    // One answer each: a request that goes on, with a body for instance, is not read.
    calls_.add_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    const MHD_Result queued = calls_.queue_response(connection, status, response);
    calls_.destroy_response(response);
    return queued;
  }

  const Calls calls_;
  const Page page_;
  const std::uint16_t port_;
  const base::UniqueFd stop_;  // an eventfd
  // A forked child would keep the port, and the clients waiting, after the death of this process. The daemon does not
  // wait for the listener while there are too many clients.
  base::PrivateFd listener_;
  MHD_Daemon* daemon_ = nullptr;
  base::PrivateEpoll clients_;
  base::HelperThread thread_;
};

}  // namespace

Result<std::unique_ptr<MetricsServer>> MetricsServer::start(const std::string& address, Page page) {
  auto where = wire::parse_service_endpoint(address);
  if (!where) {
    return fail(where.error().code,
                fmt::format("cannot answer requests for metrics at \"{}\": {}", address, where.error().text));
  }
  const auto calls = load_microhttpd();
  if (!calls) {
    return calls.error();
  }
  auto socket = wire::listen_at(*where);
  if (!socket) {
    const std::errc why = socket.error().code;
    return fail(why, fmt::format("cannot answer requests for metrics at {}: {}; name another address or "
                                 "port, or port 0 for a free one",
                                 where->text(), base::errno_text(static_cast<int>(why))));
  }
  base::UniqueFd stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop) {
    return fail_errno(errno, "cannot answer requests for metrics: eventfd");
  }
  auto server = std::make_unique<HttpServer>(*calls, std::move(page), where->port(), std::move(stop));
  if (auto serves = server->serve(*std::move(socket)); !serves) {
    return serves.error();
  }
  return server;
}

}  // namespace shmem::exchange
