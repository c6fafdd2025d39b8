// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/bootstrap/local.hpp"
#include "shmem/bootstrap/single.hpp"

namespace shmem {

namespace {

/// The launcher is found by what it left in the environment.
Result<std::unique_ptr<Bootstrap>> find_bootstrap(const BootstrapRequest& request) {
  if (in_local_job()) return join_local_job(request.limit);
  return std::make_unique<SingleBootstrap>();
}

tl::unexpected<Error> not_built(const char* name) {
  return fail(std::errc::not_supported,
              std::string("shmem: SHMEM_BOOTSTRAP=") + name + ": this libshmem was built without it");
}

}  // namespace

BootstrapRequest bootstrap_request(const Options& options) {
  return {.kind = options.bootstrap, .limit = options.bootstrap_timeout};
}

Result<std::unique_ptr<Bootstrap>> make_bootstrap(const BootstrapRequest& request) {
  switch (request.kind) {
    case BootstrapKind::kAuto:
    case BootstrapKind::kLocal:
      return find_bootstrap(request);
    case BootstrapKind::kUid:
      return not_built("uid");
    case BootstrapKind::kPmix:
      return not_built("pmix");
    case BootstrapKind::kMpi:
      return not_built("mpi");
  }
  return fail(std::errc::invalid_argument, "shmem: no such bootstrap");
}

}  // namespace shmem
