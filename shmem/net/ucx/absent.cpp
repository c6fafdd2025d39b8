// SPDX-License-Identifier: Apache-2.0
// For builds without the headers of UCX.
#include "shmem/net/message_port.hpp"
#include "shmem/net/network.hpp"

namespace shmem {

Result<std::unique_ptr<Network>> make_network(Bootstrap& /*world*/, NetworkSettings /*settings*/) {
  return fail(std::errc::not_supported,
              "shmem: this job has PEs on several nodes, but this libshmem was built without UCX: build it where "
              "libucx-dev is installed, or start all PEs on one node");
}

Result<std::unique_ptr<MessagePort>> make_message_port(PortHandlers /*handlers*/, bool /*rdma_only*/,
                                                       const std::string& /*library*/) {
  return fail(std::errc::not_supported,
              "this libshmem was built without UCX, which carries blocks between nodes: build it where libucx-dev is "
              "installed");
}

}  // namespace shmem
