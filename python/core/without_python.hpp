// SPDX-License-Identifier: Apache-2.0
// Waiting without Python's lock.
#pragma once

#include <Python.h>

#include "python/core/interpreter_exit.hpp"

namespace shmem_python {

/// While it lives, this thread does not hold Python's lock, if it did. For waits for other processes, and for threads
/// of this one: they need the lock to let go of a tensor. PyTorch calls with and without it. Unlike
/// pybind11::gil_scoped_release, it does not ask for the lock of an interpreter that exits.
class WithoutPython {
 public:
  WithoutPython() : state_(holds_python_lock() ? PyEval_SaveThread() : nullptr) {}
  WithoutPython(const WithoutPython&) = delete;
  WithoutPython& operator=(const WithoutPython&) = delete;
  ~WithoutPython() {
    if (state_ != nullptr) {
      const PythonWork returning;
      if (!returning.may_run()) {
        stay_if_interpreter_exits();
      }
      PyEval_RestoreThread(state_);
    }
  }

 private:
  PyThreadState* const state_;
};

}  // namespace shmem_python
