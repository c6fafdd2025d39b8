// SPDX-License-Identifier: Apache-2.0
#include "kv/service/metrics_server.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <signal.h>

#include <string_view>
#include <utility>

#include "shmem/bootstrap/uid_socket.hpp"

namespace shmem::exchange {
namespace {

constexpr const char* kLibrary = "libmicrohttpd.so.12";
constexpr const char* kContentType = "application/openmetrics-text; version=1.0.0; charset=utf-8";
// A client that asks for nothing, or takes no answer, loses its connection.
constexpr unsigned kMostConnections = 32;
constexpr unsigned kIdleSeconds = 5;
constexpr std::size_t kConnectionBytes = std::size_t{16} << 10;

/// What is called of libmicrohttpd.
struct Calls {
  decltype(&::MHD_start_daemon) start_daemon;
  decltype(&::MHD_stop_daemon) stop_daemon;
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
      find_call(library, "MHD_stop_daemon", calls.stop_daemon) &&
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

bool is_port(const std::string& address) {
  return !address.empty() && address.find_first_not_of("0123456789") == std::string::npos;
}

class HttpServer final : public MetricsServer {
 public:
  HttpServer(const Calls& calls, Page page, std::uint16_t port) : calls_(calls), page_(std::move(page)), port_(port) {}
  ~HttpServer() override {
    if (daemon_ != nullptr) {
      calls_.stop_daemon(daemon_);  // ends the connections and the thread
    }
  }

  Result<void> serve(base::UniqueFd socket) {
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);  // its thread takes no signals
    daemon_ = calls_.start_daemon(MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ITC, 0, nullptr, nullptr, &answer, this,
                                  MHD_OPTION_LISTEN_SOCKET, socket.release(), MHD_OPTION_CONNECTION_LIMIT,
                                  kMostConnections, MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds,
                                  MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes, MHD_OPTION_END);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return daemon_ != nullptr ? Result<void>()
                              : fail(std::errc::resource_unavailable_try_again,
                                     "cannot start a thread that answers requests for metrics");
  }
  [[nodiscard]] std::uint16_t port() const override { return port_; }

 private:
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
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<MetricsServer>> MetricsServer::start(const std::string& address, Page page) {
  auto where = parse_listening_endpoint(is_port(address) ? "127.0.0.1:" + address : address);
  if (!where) {
    return fail(where.error().code,
                fmt::format("cannot answer requests for metrics at \"{}\": {}", address, where.error().text));
  }
  const auto calls = load_microhttpd();
  if (!calls) {
    return calls.error();
  }
  auto socket = listen_at(*where);
  if (!socket) {
    const std::errc why = socket.error().code;
    return fail(why, fmt::format("cannot answer requests for metrics at {}: {}; name another address or "
                                 "port, or port 0 for a free one",
                                 where->text(), base::errno_text(static_cast<int>(why))));
  }
  auto server = std::make_unique<HttpServer>(*calls, std::move(page), where->port());
  if (auto serves = server->serve(*std::move(socket)); !serves) {
    return serves.error();
  }
  return server;
}

}  // namespace shmem::exchange
