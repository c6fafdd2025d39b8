// SPDX-License-Identifier: Apache-2.0
// sched_yield() of a test program, in place of the C library's: it counts.
#pragma once

#include <atomic>

namespace shmem_test {

extern thread_local unsigned yields_of_thread;
/// The same, for another thread; such yields do nothing, since a thread that has lost time slices to other programs
/// would yield less often.
extern thread_local std::atomic<unsigned>* seen_yields;

}  // namespace shmem_test
