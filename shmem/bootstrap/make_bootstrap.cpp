// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/bootstrap/local.hpp"
#include "shmem/bootstrap/single.hpp"

namespace shmem {

namespace {

constexpr const char* kVariable = "SHMEM_BOOTSTRAP";

/// The launcher is found by what it left in the environment.
Result<std::unique_ptr<Bootstrap>> find_bootstrap() {
  if (in_local_job()) return join_local_job();
  return std::make_unique<SingleBootstrap>();
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> make_bootstrap() {
  const char* value = std::getenv(kVariable);
  const std::string name = value == nullptr || *value == '\0' ? "auto" : value;
  if (name == "auto" || name == "local") return find_bootstrap();
  return fail(std::errc::invalid_argument, std::string("shmem: ") + kVariable + "=" + name +
                                               " names no bootstrap (how the PEs of a job find each other): there are "
                                               "auto and local");
}

}  // namespace shmem
