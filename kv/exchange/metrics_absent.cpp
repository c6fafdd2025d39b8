// SPDX-License-Identifier: Apache-2.0
// For builds without the header of libmicrohttpd.
#include "kv/exchange/metrics_server.hpp"

namespace shmem::exchange {

Result<std::unique_ptr<MetricsServer>> MetricsServer::start(const std::string& /*address*/, Page /*page*/) {
  return fail(std::errc::operation_not_supported,
              "cannot answer requests for metrics: this libshmem was built without libmicrohttpd; build it "
              "where libmicrohttpd-dev is installed, or do without metrics");
}

}  // namespace shmem::exchange
