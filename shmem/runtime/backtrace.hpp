// SPDX-License-Identifier: Apache-2.0
// Where a PE was that ends the job (SHMEM_BACKTRACE): by a mistake, or by a signal that the program does not handle.
#pragma once

namespace shmem {

/// From now on until forget_crashes(): handlers of SIGABRT, SIGSEGV, SIGBUS, SIGFPE and SIGILL for those that have the
/// default action, which follows the handler's report. `pe`: for a message without oshrun.
void report_crashes(int pe);
/// Handlers that the program has set since stay.
void forget_crashes();

/// The calls that the calling thread is in, but for this library's, for the report of this process's end: between
/// report_crashes() and its end, and nothing otherwise.
void note_calls();

}  // namespace shmem
