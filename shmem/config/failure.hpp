// SPDX-License-Identifier: Apache-2.0
// What becomes of a failure that a call cannot return: the end of this process, or an error of the calling thread.
#pragma once

#include <string>
#include <string_view>

#include "shmem/result.hpp"

namespace shmem {

/// Whether the program has asked for errors to be returned (shmemx_set_errors_return). Any thread.
bool errors_return();
void set_errors_return(bool wanted);

/// Whether the program goes on when another PE dies (shmemx_set_survive). Any thread.
bool wants_to_survive();
void set_wants_to_survive(bool wanted);

/// Unwinds a failed call to its entry point, which records the error (SHMEM_CATCH). Thrown only if errors_return().
struct CallFailure {
  Error error;
};

enum class ProcessEnd {
  kAtOnce,            // standard streams are flushed; for a PE whose other threads may use the library
  kWithExitHandlers,  // as by exit()
};
/// Tells of the end of this process in place of a message: false, without an effect, if it cannot.
using EndTeller = bool (*)(const std::string& text);
void set_end_teller(EndTeller teller);
/// The last message of a process that ends because of a failure: to the program's log handler, or the teller, or
/// standard error.
void log_last_words(const std::string& text);
/// The message of a failed call that returns. If the job has ended, the teller tells that instead: not each PE.
void log_failed_call(const std::string& text);
/// In the message of each call that fails for that reason.
constexpr std::string_view kJobWasEnded = "the job was ended";

/// The one place of the library where a call ends its process because of a failure, after a message unless the text is
/// empty or the status is 0. If errors return, throws CallFailure instead.
[[noreturn]] void end_process_for(const Error& error, int status, ProcessEnd way = ProcessEnd::kAtOnce);

/// The calling thread runs exit(): the process will have this status. Whatever fails in another thread from now on does
/// not end it, since the status would be another. The same thread may change the status.
void note_exit(int status);
/// Returns at once, unless another thread runs exit(): then it ends with the process.
void wait_if_exiting();

}  // namespace shmem
