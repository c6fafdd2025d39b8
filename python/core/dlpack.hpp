// SPDX-License-Identifier: Apache-2.0
// Exchange of arrays with other libraries by DLPack capsules.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace shmem_kv {

namespace py = pybind11;

/// The parts of DLPack that all its versions since 0.2 share; the names are DLPack's.
struct DLTensor {
  void* data;
  struct {
    std::int32_t type;
    std::int32_t id;
  } device;
  std::int32_t ndim;
  struct {
    std::uint8_t code;
    std::uint8_t bits;
    std::uint16_t lanes;
  } dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; nullptr: contiguous
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};

/// Another library's array, whose memory lives as long as this.
class Imported {
 public:
  /// Takes the array out of the capsule. Raises ValueError for what is not a capsule with an array, or was taken.
  explicit Imported(const py::capsule& capsule);
  Imported(const Imported&) = delete;
  Imported& operator=(const Imported&) = delete;
  ~Imported();

  [[nodiscard]] std::uintptr_t address() const;
  [[nodiscard]] std::vector<std::int64_t> shape() const;
  [[nodiscard]] bool is_contiguous() const;
  [[nodiscard]] bool is_on_cpu() const { return tensor_->dl_tensor.device.type == 1; }
  [[nodiscard]] int code() const { return tensor_->dl_tensor.dtype.code; }
  [[nodiscard]] int bits() const { return tensor_->dl_tensor.dtype.bits * tensor_->dl_tensor.dtype.lanes; }

 private:
  DLManagedTensor* tensor_;
};

/// A capsule with a contiguous array of `owner`'s memory, which keeps `owner` alive.
py::capsule export_array(const py::object& owner, std::uintptr_t address, const std::vector<std::int64_t>& shape,
                         int code, int bits);

/// The memory as a NumPy array, which keeps `owner` alive.
py::array view_array(const py::object& owner, std::uintptr_t address, const std::vector<py::ssize_t>& shape,
                     const py::dtype& type);

void bind_dlpack(py::module_& module);

}  // namespace shmem_kv
