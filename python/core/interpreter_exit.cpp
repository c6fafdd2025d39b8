// SPDX-License-Identifier: Apache-2.0
#include "python/core/interpreter_exit.hpp"

#include <pthread.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace shmem_python {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> exits{false};
std::atomic<int> works{0};  // PythonWork that may run
pthread_t exiting_thread;   // constant once `exits`
/// When a thread last returned to PyTorch, which then asks for Python's lock.
std::atomic<Clock::duration> returned{Clock::duration::min() / 2};

bool is_left_out() {
  return exits.load() && ::pthread_equal(exiting_thread, ::pthread_self()) == 0;
}

/// Sequentially consistent: this thread sees that the interpreter exits, or begin_interpreter_exit() sees the work.
bool begin_work() {
  works.fetch_add(1);
  if (!is_left_out()) {
    return true;
  }
  works.fetch_sub(1);
  return false;
}

void begin_interpreter_exit() {
  constexpr std::chrono::milliseconds kReturning{500};  // for PyTorch's threads to get Python's lock
  constexpr std::chrono::seconds kMost{5};
  exiting_thread = ::pthread_self();
  exits.store(true);
  const auto begin = Clock::now();
  while ((works.load() > 0 || Clock::now().time_since_epoch() - returned.load() < kReturning) &&
         Clock::now() - begin < kMost) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// Only the thread that forked is there, and it does no work.
void forget_works() {
  works.store(0);
  returned.store(Clock::duration::min() / 2);
}

}  // namespace

void watch_interpreter_exit() {
  namespace py = pybind11;
  ::pthread_atfork(nullptr, nullptr, forget_works);
  const py::cpp_function begin(&begin_interpreter_exit, py::call_guard<py::gil_scoped_release>());
  py::module_::import("atexit").attr("register")(begin);
}

bool holds_python_lock() {
  // The check alone says so of every thread from the moment on when the interpreter has deleted the threads' states.
  return PyGILState_Check() != 0 && PyGILState_GetThisThreadState() != nullptr;
}

void stay_if_interpreter_exits() {
  // Most often it is the first thread that ends the interpreter, which need not wait for itself.
  thread_local const bool is_first = ::gettid() == ::getpid();
  if (!is_first) {
    returned.store(Clock::now().time_since_epoch());
  }
  if (!is_left_out()) {
    return;
  }
  if (holds_python_lock()) {
    PyEval_SaveThread();
  }
  while (true) {
    ::pause();
  }
}

PythonWork::PythonWork() : may_run_(begin_work()) {}

PythonWork::~PythonWork() {
  if (may_run_) {
    works.fetch_sub(1);
  }
}

}  // namespace shmem_python
