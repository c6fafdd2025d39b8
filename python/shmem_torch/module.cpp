// SPDX-License-Identifier: Apache-2.0
// The Python module shmem_torch._C.
#include <pybind11/chrono.h>
#include <pybind11/stl.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/utils/pybind.h>

#include <stdexcept>

#include "python/core/interpreter_exit.hpp"
#include "python/core/without_python.hpp"
#include "python/shmem_torch/process_group.hpp"
#include "python/shmem_torch/symmetric_memory.hpp"

namespace {

using Pointer = c10::intrusive_ptr<shmem_torch::TorchBackend>;

shmem_torch::ProcessGroupShmem& shmem_group(const Pointer& group) {
  auto* const found = dynamic_cast<shmem_torch::ProcessGroupShmem*>(group.get());
  if (found == nullptr) {
    throw std::invalid_argument("shmem_torch: the backend of this group is " + group->getBackendName() +
                                "; make the group with the backend shmem");
  }
  return *found;
}

at::Tensor empty(const Pointer& group, const std::vector<std::int64_t>& shape, const pybind11::object& dtype) {
  if (!THPDtype_Check(dtype.ptr())) {
    throw pybind11::type_error("shmem_torch.empty: dtype is a torch.dtype, such as torch.bfloat16");
  }
  const at::ScalarType type = reinterpret_cast<THPDtype*>(dtype.ptr())->scalar_type;
  shmem_torch::ProcessGroupShmem& made_by = shmem_group(group);
  const shmem_python::WithoutPython released;
  return made_by.empty(shape, type);
}

pybind11::tuple statistics(const Pointer& group) {
  shmemx_group_statistics_t now{};
  {
    const shmem_torch::ProcessGroupShmem& of = shmem_group(group);
    const shmem_python::WithoutPython released;  // a running call is waited for
    now = of.statistics();
  }
  return pybind11::make_tuple(now.calls, now.direct_calls, now.staged_bytes, now.direct_messages, now.device_barriers,
                              now.sent_bytes);
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  shmem_python::watch_interpreter_exit();
  pybind11::module_::import("torch.distributed");  // its types are arguments and results
  module.def(
      "create",
      [](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, std::chrono::milliseconds timeout,
         const std::string& name, const std::vector<std::uint64_t>& ranks, bool reconfigure) {
        const shmem_torch::GroupPlace place{rank, size, timeout, name, ranks, reconfigure};
        return Pointer(c10::make_intrusive<shmem_torch::ProcessGroupShmem>(store, place));
      },
      pybind11::arg("store"), pybind11::arg("rank"), pybind11::arg("size"), pybind11::arg("timeout"),
      pybind11::arg("name") = "", pybind11::arg("ranks") = std::vector<std::uint64_t>(),
      pybind11::arg("reconfigure") = false, pybind11::call_guard<shmem_python::WithoutPython>());
  module.def(
      "monitored_barrier",
      [](const Pointer& group, std::chrono::milliseconds timeout) {
        c10d::BarrierOptions options;
        options.timeout = timeout;
        group->monitoredBarrier(options, true);
      },
      pybind11::arg("group"), pybind11::arg("timeout"), pybind11::call_guard<shmem_python::WithoutPython>());
  module.def(
      "abort", [](const Pointer& group) { shmem_group(group).abort(); }, pybind11::arg("group"),
      pybind11::call_guard<shmem_python::WithoutPython>());
  module.def("empty", &empty, pybind11::arg("group"), pybind11::arg("shape"), pybind11::arg("dtype"));
  module.def("register_symmetric_memory", &shmem_torch::register_symmetric_memory);
  module.def("statistics", &statistics, pybind11::arg("group"));
}
