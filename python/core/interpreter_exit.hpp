// SPDX-License-Identifier: Apache-2.0
// The end of the Python interpreter. A thread that then asks for Python's lock is ended by the C library, which unwinds
// its C++ frames, and that ends the process by SIGABRT.
#pragma once

namespace shmem_python {

/// Called when a module is loaded, with Python's lock. The thread that ends the interpreter waits, before it does, for
/// other threads that are on their way into Python. From then on none gets there from the module.
void watch_interpreter_exit();

/// Whether this thread holds Python's lock, also while the interpreter ends and when it has ended.
bool holds_python_lock();

/// At the beginning and the end of calls that may wait: does not return to another thread than the one that ends the
/// interpreter. Such a thread stays here until the process ends.
void stay_if_interpreter_exits();

/// Work that takes Python's lock, or runs Python's code, which gives it up now and then: a call's return and its error;
/// in threads that Python may not know, callbacks of futures and the end of tensors. The thread that ends the
/// interpreter waits for it.
class PythonWork {
 public:
  PythonWork();
  PythonWork(const PythonWork&) = delete;
  PythonWork& operator=(const PythonWork&) = delete;
  ~PythonWork();
  /// False: the interpreter exits, so this thread must leave the work out.
  [[nodiscard]] bool may_run() const { return may_run_; }

 private:
  const bool may_run_;
};

}  // namespace shmem_python
