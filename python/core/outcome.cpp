// SPDX-License-Identifier: Apache-2.0
#include "python/core/outcome.hpp"

#include <cerrno>

namespace shmem_kv {

void raise(int error, const std::string& text) {
  switch (error) {
    case EINVAL:
      throw py::value_error(text);
    case ENOMEM:
      PyErr_SetString(PyExc_MemoryError, text.c_str());
      break;
    case EBUSY:
    case EALREADY:
      PyErr_SetString(PyExc_RuntimeError, text.c_str());
      break;
    case ECANCELED:
    case EHOSTUNREACH:  // a PE of this node could not reach the other nodes: one there has died
    case EOWNERDEAD:
    case EPROTO:
      PyErr_SetObject(PyExc_ConnectionError, py::make_tuple(error, text).ptr());
      break;
    default:  // OSError, or its subclass for this number: TimeoutError, ConnectionAbortedError ...
      PyErr_SetObject(PyExc_OSError, py::make_tuple(error, text).ptr());
  }
  throw py::error_already_set();
}

}  // namespace shmem_kv
