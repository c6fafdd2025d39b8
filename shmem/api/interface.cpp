// SPDX-License-Identifier: Apache-2.0
// What interfaces with other names are built on, where it is not with the calls of OpenSHMEM that do the same.
#include "shmemx_interface.h"

#include "shmem/api/kernel_core.hpp"
#include "shmem/log.hpp"

using shmem::Context;
namespace api = shmem::api;

extern "C" {

void shmemx_await_default_stream() noexcept {
  const Context* context = Context::current();
  if (context == nullptr || api::current_core() != nullptr) {
    return;
  }
  if (shmem::Stream* stream = context->started_default_stream(); stream != nullptr) {
    stream->wait();
  }
}

int shmemx_not_supported(const char* call) noexcept {
  const std::string text = std::string("shmem: ") + call + ": not supported here";
  Context* context = Context::current();
  if (context == nullptr || context->first_notice(call)) {
    shmem::log(shmem::LogLevel::kError, "%s", text.c_str());
  }
  return api::report({std::errc::not_supported, text});
}
}
