// SPDX-License-Identifier: Apache-2.0
// Memory that the program has, as symmetric memory.
#include "shmem/api/check.hpp"
#include "shmem/api/kernel_core.hpp"
#include "shmem/api/ordering.hpp"
#include "shmem/runtime/memory_registration.hpp"

using shmem::Runtime;
namespace api = shmem::api;

namespace {

/// The end of a call that is collective over the job. All PEs have the same error, which names one of them.
int outcome(const Runtime& runtime, const char* call, const shmem::Result<void>& done) {
  if (done) {
    return 0;
  }
  const std::string& text = done.error().text;
  return api::report({done.error().code, text.starts_with("shmem: ")
                                             ? text
                                             : fmt::format("shmem: PE {}: {}: {}", runtime.my_pe(), call, text)});
}

}  // namespace

extern "C" {

int shmemx_memory_register(void* address, size_t bytes, int fd, uint64_t offset) noexcept try {
  Runtime& runtime = api::running_on_host(__func__);
  api::check_call(runtime, runtime.teams().home(), __func__);
  return outcome(runtime, __func__,
                 runtime.registration().add({{static_cast<std::byte*>(address), bytes}, fd, offset}));
}
SHMEM_CATCH(int)

int shmemx_memory_unregister(void* address) noexcept try {
  Runtime& runtime = api::running_on_host(__func__);
  api::check_call(runtime, runtime.teams().home(), __func__);
  api::quiet();
  return outcome(runtime, __func__, runtime.registration().remove(address));
}
SHMEM_CATCH(int)
}
