// SPDX-License-Identifier: Apache-2.0
#include "python/core/dlpack.hpp"

#include <pybind11/stl.h>

#include <memory>

#include "python/core/interpreter_exit.hpp"

namespace shmem_kv {
namespace {

constexpr const char* kFresh = "dltensor";
constexpr const char* kTaken = "used_dltensor";
constexpr std::int32_t kCpu = 1;

/// What an exported capsule points to.
struct Exported {
  DLManagedTensor managed{};
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  py::object owner;
};

/// Called by whoever has taken the array, without the GIL perhaps.
void end_exported(DLManagedTensor* tensor) {
  const shmem_python::PythonWork work;
  if (!work.may_run() || Py_IsInitialized() == 0) {
    return;  // the interpreter ends or has ended, and its objects with it
  }
  const py::gil_scoped_acquire held;
  const std::unique_ptr<Exported> ended(static_cast<Exported*>(tensor->manager_ctx));
}

/// Of a capsule that nobody has taken the array from.
void end_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kFresh) != 0) {
    auto* const tensor = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kFresh));
    if (tensor->deleter != nullptr) {
      tensor->deleter(tensor);
    }
  }
}

}  // namespace

Imported::Imported(const py::capsule& capsule) : tensor_(nullptr) {
  if (PyCapsule_IsValid(capsule.ptr(), kFresh) == 0) {
    throw py::value_error("__dlpack__ gave no new capsule named \"dltensor\"");
  }
  tensor_ = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kFresh));
  PyCapsule_SetName(capsule.ptr(), kTaken);
}

Imported::~Imported() {
  if (tensor_->deleter != nullptr) {
    tensor_->deleter(tensor_);
  }
}

std::uintptr_t Imported::address() const {
  return reinterpret_cast<std::uintptr_t>(tensor_->dl_tensor.data) + tensor_->dl_tensor.byte_offset;
}

std::vector<std::int64_t> Imported::shape() const {
  return {tensor_->dl_tensor.shape, tensor_->dl_tensor.shape + tensor_->dl_tensor.ndim};
}

bool Imported::is_contiguous() const {
  const DLTensor& tensor = tensor_->dl_tensor;
  std::int64_t expected = 1;
  for (std::int32_t i = tensor.ndim - 1; i >= 0 && tensor.strides != nullptr; --i) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) {
      return false;
    }
    expected *= tensor.shape[i];
  }
  return true;
}

py::capsule export_array(const py::object& owner, std::uintptr_t address, const std::vector<std::int64_t>& shape,
                         int code, int bits) {
  auto made = std::make_unique<Exported>();
  made->owner = owner;
  made->shape = shape;
  made->strides.assign(shape.size(), 1);
  for (std::size_t i = shape.size(); i > 1; --i) {
    made->strides[i - 2] = made->strides[i - 1] * shape[i - 1];
  }
  DLTensor& tensor = made->managed.dl_tensor;
  tensor = {.data = reinterpret_cast<void*>(address),  // NOLINT(performance-no-int-to-ptr): comes from a Block
            .device = {kCpu, 0},
            .ndim = static_cast<std::int32_t>(shape.size()),
            .dtype = {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), 1},
            .shape = made->shape.data(),
            .strides = made->strides.data(),
            .byte_offset = 0};
  made->managed.manager_ctx = made.get();
  made->managed.deleter = &end_exported;
  auto capsule = py::reinterpret_steal<py::capsule>(PyCapsule_New(&made->managed, kFresh, &end_capsule));
  if (!capsule) {
    throw py::error_already_set();
  }
  static_cast<void>(made.release());  // the capsule's
  return capsule;
}

py::array view_array(const py::object& owner, std::uintptr_t address, const std::vector<py::ssize_t>& shape,
                     const py::dtype& type) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): comes from a Block or from another library
  return {type, shape, {}, reinterpret_cast<const void*>(address), owner};
}

void bind_dlpack(py::module_& module) {
  py::class_<Imported>(module, "Imported")
      .def(py::init<const py::capsule&>())
      .def_property_readonly("address", &Imported::address)
      .def_property_readonly("shape", &Imported::shape)
      .def_property_readonly("contiguous", &Imported::is_contiguous)
      .def_property_readonly("on_cpu", &Imported::is_on_cpu)
      .def_property_readonly("code", &Imported::code)
      .def_property_readonly("bits", &Imported::bits);
  module.def("export_array", &export_array);
  module.def("view_array", &view_array);
}

}  // namespace shmem_kv
