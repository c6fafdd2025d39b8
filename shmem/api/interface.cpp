// SPDX-License-Identifier: Apache-2.0
// What interfaces with other names need beyond the calls of OpenSHMEM.
#include "shmemx_interface.h"

#include <memory>
#include <new>

#include "shmem/api/kernel_core.hpp"
#include "shmem/config/log.hpp"

using shmem::Runtime;
namespace api = shmem::api;

extern "C" {

void shmemx_await_default_stream() noexcept try {
  const Runtime* runtime = Runtime::current();
  if (runtime == nullptr || api::current_core() != nullptr) {
    return;
  }
  if (shmem::Stream* stream = runtime->started_default_stream(); stream != nullptr) {
    stream->wait();
  }
}
SHMEM_CATCH(void)

int shmemx_not_supported(const char* call) noexcept try {
  const std::string text = fmt::format("shmem: {}: not supported here", call);
  Runtime* runtime = Runtime::current();
  if (runtime == nullptr || runtime->first_notice(call)) {
    shmem::log(shmem::LogLevel::kError, "%s", text.c_str());
  }
  return api::report({std::errc::not_supported, text});
}
SHMEM_CATCH(int)

/// Each thread has memory that takes the place of a core's own.
void* shmemx_scratch(const void* pointer) noexcept try {
  static thread_local std::unique_ptr<std::byte[]> mine;
  const auto offset = reinterpret_cast<std::uintptr_t>(pointer);
  if (offset >= SHMEMX_SCRATCH_SIZE) {
    return const_cast<void*>(pointer);
  }
  if (mine == nullptr) {
    try {
      mine = std::make_unique_for_overwrite<std::byte[]>(SHMEMX_SCRATCH_SIZE);
    } catch (const std::bad_alloc&) {
      api::end_job(api::running("shmemx_scratch"), "shmemx_scratch", "out of memory");
    }
  }
  return mine.get() + offset;
}
SHMEM_CATCH(void*)
}
