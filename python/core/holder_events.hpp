// SPDX-License-Identifier: Apache-2.0
// Events of a holder for the Python files: what it has stored and removed.
#pragma once

#include <pybind11/pybind11.h>

namespace shmem_kv {

namespace py = pybind11;

void bind_holder_events(py::module_& module);

}  // namespace shmem_kv
