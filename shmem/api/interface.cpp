// SPDX-License-Identifier: Apache-2.0
// What interfaces with other names need beyond the calls of OpenSHMEM.
#include "shmemx_interface.h"

#include <array>
#include <memory>
#include <mutex>
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

shmemx_engine_t* shmemx_engine(int engine) noexcept {
  constexpr shmemx_engine_t kDefault{0, 16U << 10, 0, 1};
  static std::array<shmemx_engine_t, 4> engines{kDefault, kDefault, kDefault, kDefault};
  return &engines[static_cast<std::size_t>(engine)];
}

int shmemx_sync_alone(const char* call, shmem_team_t team) noexcept try {
  Runtime& runtime = api::running(call);
  shmemx_core_t* core = api::current_core();
  if (core == nullptr) {
    shmemx_await_default_stream();
  } else if (core->error != std::errc{}) {
    return core->failed();
  }
  shmem::Team& found = api::valid_team(runtime, call, team);
  static std::mutex of_cores;
  const std::unique_lock alone = core != nullptr ? std::unique_lock(of_cores) : std::unique_lock<std::mutex>();
  const auto ok = found.sync();
  if (core != nullptr) {
    return core->keep(ok);
  }
  return ok ? 0 : api::report_loudly(ok.error());
}
SHMEM_CATCH(int)

void shmemx_refuse(const char* call, const char* problem) noexcept try {
  api::end_job(api::running(call), call, problem);
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
