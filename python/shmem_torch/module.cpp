// SPDX-License-Identifier: Apache-2.0
// The Python module shmem_torch._C.
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "python/shmem_torch/process_group.hpp"

#if TORCH_VERSION_MAJOR >= 2
using Made = c10d::Backend;
#else
using Made = c10d::ProcessGroup;
#endif

PYBIND11_MODULE(_C, module) {
  pybind11::module_::import("torch.distributed");  // its types are arguments and results
  module.def(
      "create",
      [](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, std::chrono::milliseconds timeout) {
        return c10::intrusive_ptr<Made>(
            c10::make_intrusive<shmem_torch::ProcessGroupShmem>(store, rank, size, timeout));
      },
      pybind11::arg("store"), pybind11::arg("rank"), pybind11::arg("size"), pybind11::arg("timeout"),
      pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def(
      "monitored_barrier",
      [](const c10::intrusive_ptr<Made>& group, std::chrono::milliseconds timeout) {
        c10d::BarrierOptions options;
        options.timeout = timeout;
        group->monitoredBarrier(options, true);
      },
      pybind11::arg("group"), pybind11::arg("timeout"), pybind11::call_guard<pybind11::gil_scoped_release>());
}
