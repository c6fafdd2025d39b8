// SPDX-License-Identifier: Apache-2.0
// For builds without the headers of UCX.
#include "shmem/net/network.hpp"

namespace shmem {

Result<std::unique_ptr<Network>> make_network(Bootstrap& /*world*/, NetworkSettings /*settings*/) {
  return fail(std::errc::not_supported,
              "shmem: this job has PEs on several nodes, but this libshmem was built without UCX: build it where "
              "libucx-dev is installed, or start all PEs on one node");
}

}  // namespace shmem
