// SPDX-License-Identifier: Apache-2.0
// Answers requests for metrics over HTTP, by libmicrohttpd.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "shmem/result.hpp"

namespace shmem::exchange {

/// Listens as long as it exists. A thread of its own answers, which no client can make wait.
class MetricsServer {
 public:
  /// Makes the page, in that thread. It outlives the server, with what it uses.
  using Page = std::function<std::string()>;

  /// `address`: a port of 127.0.0.1, or an address and a port.
  static Result<std::unique_ptr<MetricsServer>> start(const std::string& address, Page page);

  MetricsServer() = default;
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;
  virtual ~MetricsServer() = default;

  [[nodiscard]] virtual std::uint16_t port() const = 0;
};

}  // namespace shmem::exchange
