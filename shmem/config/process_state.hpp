// SPDX-License-Identifier: Apache-2.0
// What a process has once, also if it has loaded both libshmem and libkvexchange. Those two are linked with the same
// static parts, so each has its own copy of their variables. libkvexchange defines these functions and exports them;
// libshmem, which needs that library, has no definition of its own (a test looks). Programs that are linked with the
// static parts have one.
//
// Other variables of shared parts may exist twice: the descriptors that a forked child gets replaced (base/private_fd)
// and the count of forks (base/forks) are each library's own, the same settings of UCX are made twice (wire/ucx/calls),
// and libsodium's start counts the second time as done.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "shmem/config/log.hpp"

namespace shmem {

struct ProcessState {
  // Relaxed: neither of the two publishes other data.
  std::atomic<LogHandler> log_handler{nullptr};
  std::atomic<LogLevel> log_level{LogLevel::kDebug};
  std::mutex secret_mutex;  // for the next
  std::string job_secret;   // SHMEM_UID_SECRET, which a PE takes out of its environment
};

}  // namespace shmem

// The number changes with the struct, so that libraries of different versions do not misread each other's.
extern "C" {
[[gnu::visibility("default")]] shmem::ProcessState* kvexchange_process_state_1() noexcept;
/// The text of the calling thread's last failed call; nullptr at the end of the thread.
[[gnu::visibility("default")]] std::string* kvexchange_error_text_1() noexcept;
}
