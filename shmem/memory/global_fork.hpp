// SPDX-License-Identifier: Apache-2.0
// A child made by fork() shares no global variable with its parent.
#pragma once

#include <mutex>

namespace shmem {

class GlobalSwap;

/// While it lives no fork() of another thread is under way. REQUIRES: a SignalBlock on this thread.
class ForkLock {
 public:
  ForkLock();

 private:
  std::lock_guard<std::mutex> lock_;
};

/// From now on fork() copies the ranges of `swap` (nullptr: nothing) for the child, before the child is made: copied
/// by the child, they would show what the parent has stored since. A child that cannot get its copy is ended with a
/// message.
///
/// Not covered: _Fork(), clone(), and handlers of pthread_atfork that were registered before this library was loaded:
/// in the child these run first. vfork(), posix_spawn() and system() need nothing. REQUIRES: a ForkLock on this thread.
void isolate_forks(const GlobalSwap* swap);

}  // namespace shmem
