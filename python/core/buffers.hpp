// SPDX-License-Identifier: Apache-2.0
// Ranges of memory that calls read or write: those of Python objects, which cannot be freed or resized meanwhile, or
// plain addresses, for which the caller answers.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace shmem_kv {

namespace py = pybind11;

/// Made, used and destroyed with the interpreter's lock; the addresses may be used without it.
class Buffers {
 public:
  using Numbers = py::array_t<std::uint64_t, py::array::c_style>;

  /// Objects with the buffer protocol. Raises BufferError for one that is not contiguous, or read-only and to be
  /// written.
  static std::shared_ptr<Buffers> of_objects(const py::sequence& objects, bool writable);
  static std::shared_ptr<Buffers> of_ranges(const Numbers& addresses, const Numbers& sizes);

  Buffers() = default;
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers();

  [[nodiscard]] std::size_t count() const { return addresses_.size(); }
  [[nodiscard]] void* address(std::size_t index) const { return addresses_[index]; }
  [[nodiscard]] std::uint64_t size(std::size_t index) const { return sizes_[index]; }
  [[nodiscard]] py::array addresses() const;
  [[nodiscard]] py::array sizes() const;

 private:
  std::vector<Py_buffer> held_;
  std::vector<void*> addresses_;
  std::vector<std::uint64_t> sizes_;
};

void bind_buffers(py::module_& module);

}  // namespace shmem_kv
