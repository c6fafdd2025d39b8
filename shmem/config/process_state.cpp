// SPDX-License-Identifier: Apache-2.0
#include "shmem/config/process_state.hpp"

#include <memory>

namespace {

/// exit() destroys those of its thread before it calls handlers, which may use the library.
constinit thread_local bool error_text_is_gone = false;
struct ErrorText {
  ErrorText() = default;
  ErrorText(const ErrorText&) = delete;
  ErrorText& operator=(const ErrorText&) = delete;
  ~ErrorText() { error_text_is_gone = true; }
  std::string text;
};

}  // namespace

extern "C" {

shmem::ProcessState* kvexchange_process_state_1() noexcept {
  // Never destroyed: exit handlers and other threads may log until the process has ended.
  static auto* const state = std::make_unique<shmem::ProcessState>().release();
  return state;
}

std::string* kvexchange_error_text_1() noexcept {
  if (error_text_is_gone) {
    return nullptr;
  }
  static thread_local ErrorText text;
  return &text.text;
}
}
