// SPDX-License-Identifier: Apache-2.0
// For builds without the headers of UCX.
#include "wire/message_port.hpp"

namespace wire {

Result<std::unique_ptr<MessagePort>> make_message_port(PortHandlers /*handlers*/, bool /*rdma_only*/,
                                                       const std::string& /*library*/) {
  return base::fail(
      std::errc::not_supported,
      "this libshmem was built without UCX, which carries blocks between nodes: build it where libucx-dev is "
      "installed");
}

}  // namespace wire
