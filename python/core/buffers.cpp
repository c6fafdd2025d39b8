// SPDX-License-Identifier: Apache-2.0
#include "python/core/buffers.hpp"

#include <cstring>
#include <string>

#include "python/core/without_python.hpp"

namespace shmem_kv {

std::shared_ptr<Buffers> Buffers::of_objects(const py::sequence& objects, bool writable) {
  auto made = std::make_shared<Buffers>();
  made->held_.reserve(objects.size());
  for (py::handle object : objects) {
    Py_buffer buffer{};
    if (PyObject_GetBuffer(object.ptr(), &buffer, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE) != 0) {
      throw py::error_already_set();
    }
    made->held_.push_back(buffer);
    made->addresses_.push_back(buffer.buf);
    made->sizes_.push_back(static_cast<std::uint64_t>(buffer.len));
  }
  return made;
}

std::shared_ptr<Buffers> Buffers::of_ranges(const Numbers& addresses, const Numbers& sizes) {
  if (addresses.size() != sizes.size()) {
    throw py::value_error("there are " + std::to_string(addresses.size()) + " addresses, but " +
                          std::to_string(sizes.size()) + " sizes");
  }
  auto made = std::make_shared<Buffers>();
  for (py::ssize_t i = 0; i < addresses.size(); ++i) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the caller answers for it
    made->addresses_.push_back(reinterpret_cast<void*>(static_cast<std::uintptr_t>(addresses.data()[i])));
  }
  made->sizes_.assign(sizes.data(), sizes.data() + sizes.size());
  return made;
}

Buffers::~Buffers() {
  for (Py_buffer& buffer : held_) {
    PyBuffer_Release(&buffer);
  }
}

py::array Buffers::addresses() const {
  py::array_t<std::uint64_t> array(static_cast<py::ssize_t>(count()));
  for (std::size_t i = 0; i < count(); ++i) {
    array.mutable_data()[i] = reinterpret_cast<std::uintptr_t>(addresses_[i]);
  }
  return array;
}

py::array Buffers::sizes() const {
  return py::array_t<std::uint64_t>(static_cast<py::ssize_t>(count()), sizes_.data());
}

namespace {

void copy(const Buffers& to, const Buffers& from) {
  if (to.count() != from.count()) {
    throw py::value_error("copy: " + std::to_string(to.count()) + " destinations of " + std::to_string(from.count()) +
                          " sources");
  }
  for (std::size_t i = 0; i < to.count(); ++i) {
    if (to.size(i) != from.size(i)) {
      throw py::value_error("copy: destination " + std::to_string(i) + " has " + std::to_string(to.size(i)) +
                            " bytes, but its source " + std::to_string(from.size(i)));
    }
  }
  const shmem_python::WithoutPython released;
  for (std::size_t i = 0; i < to.count(); ++i) {
    if (to.size(i) > 0) {
      std::memcpy(to.address(i), from.address(i), to.size(i));
    }
  }
}

}  // namespace

void bind_buffers(py::module_& module) {
  py::class_<Buffers, std::shared_ptr<Buffers>>(module, "Buffers")
      .def_static("of_objects", &Buffers::of_objects)
      .def_static("of_ranges", &Buffers::of_ranges)
      .def_property_readonly("count", &Buffers::count)
      .def_property_readonly("addresses", &Buffers::addresses)
      .def_property_readonly("sizes", &Buffers::sizes);
  module.def("copy", &copy);
}

}  // namespace shmem_kv
