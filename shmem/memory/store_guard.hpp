// SPDX-License-Identifier: Apache-2.0
// Keeps the memory behind a range of addresses still while it is exchanged under the feet of running threads.
#pragma once

#include <csignal>
#include <span>

#include "shmem/memory/global_segments.hpp"

namespace shmem {

/// While it lives no signal is handled on this thread.
class SignalBlock {
 public:
  SignalBlock();
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;
  ~SignalBlock();

 private:
  sigset_t before_;
};

/// While it lives, other threads that store into the ranges wait in a SIGSEGV handler and then do it again. Without it
/// a store between the copy and the exchange is lost.
///
/// The thread that makes one must not store there itself, not even by calling a function of the program for the first
/// time (its address goes into the range): it ends the process with a message if it does. Not covered: threads that
/// block SIGSEGV are ended by the kernel, and a system call that writes into the ranges gives EFAULT.
///
/// The handler stays installed, behind it the one that was there: a thread that the kernel has sent here may arrive
/// late. None is installed, and nothing is guarded, in a process with one thread. One guard at a time in a process.
class StoreGuard {
 public:
  /// REQUIRES: a SignalBlock on this thread.
  explicit StoreGuard(std::span<const GlobalRange> ranges);
  StoreGuard(const StoreGuard&) = delete;
  StoreGuard& operator=(const StoreGuard&) = delete;
  ~StoreGuard();

  /// 0, or the errno of what could not be protected; a number, because making a text might store into the ranges.
  [[nodiscard]] int error() const { return error_; }

 private:
  std::span<const GlobalRange> ranges_;  // empty: nothing is guarded
  int error_ = 0;
};

}  // namespace shmem
