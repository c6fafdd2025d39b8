// SPDX-License-Identifier: Apache-2.0
// shmem_kv._core: jobs, symmetric memory and kv_shuffle for the module's Python files, by libshmem. Not for users:
// names and arguments may change.
#include <pybind11/stl.h>

#include <algorithm>
#include <vector>

#include "python/core/interpreter_exit.hpp"
#include "python/core/library.hpp"

namespace {

using namespace shmem_kv;

int team_number(const char* call, int team, int (*query)(shmem_team_t)) {
  Library::instance().require(call);
  const int number = query(shmemx_team_by_number(team));
  if (number < 0) {
    throw py::value_error(std::string(call) + ": this PE is not in team " + std::to_string(team));
  }
  return number;
}

int split_strided(int parent, int start, int stride, int size) {
  shmem_team_t made = SHMEM_TEAM_INVALID;
  Library::instance().wait("team_split_strided", [&] {
    return shmemx_team_split_strided(shmemx_team_by_number(parent), start, stride, size, &made);
  });
  return shmemx_team_number(made);
}

int shrink(int team) {
  shmem_team_t made = SHMEM_TEAM_INVALID;
  Library::instance().wait("team_shrink", [&] { return shmemx_team_shrink(shmemx_team_by_number(team), &made); });
  return shmemx_team_number(made);
}

int grow(int team, int processes) {
  shmem_team_t made = SHMEM_TEAM_INVALID;
  Library::instance().wait("team_grow",
                           [&] { return shmemx_team_grow(shmemx_team_by_number(team), processes, &made); });
  return shmemx_team_number(made);
}

bool is_replacement() {
  Library::instance().require("is_replacement");
  return shmemx_is_replacement() == 1;
}

std::vector<int> failed_members(int team) {
  std::vector<int> pes;
  const int most = team_number("team_failed", team, &shmem_team_n_pes);
  checked([&] {
    pes.resize(static_cast<std::size_t>(most));
    const int failed = shmemx_team_failed(shmemx_team_by_number(team), pes.data(), most);
    pes.resize(static_cast<std::size_t>(std::max(failed, 0)));
    return std::min(failed, 0);
  });
  return pes;
}

void bind_library(py::module_& module) {
  module.def("init", [](std::size_t heap_size, const py::bytes& unique_id, int my_pe, int n_pes, bool survive) {
    Library::instance().start(
        {.heap_size = heap_size, .unique_id = unique_id, .my_pe = my_pe, .pes = n_pes, .survive = survive});
  });
  module.def("unique_id", [] { return py::bytes(make_unique_id()); });
  module.def("finalize", [] { Library::instance().stop(); });
  module.def("initialized", [] { return Library::instance().runs(); });
  module.def("require", [](const char* call) { Library::instance().require(call); });
  module.def("my_pe", [](int team) { return team_number("my_pe", team, &shmem_team_my_pe); });
  module.def("n_pes", [](int team) { return team_number("n_pes", team, &shmem_team_n_pes); });
  module.def("team_split_strided", &split_strided);
  module.def("team_shrink", &shrink);
  module.def("team_grow", &grow);
  module.def("is_replacement", &is_replacement);
  module.def("team_failed", &failed_members);
  module.def("team_destroy", [](int team) {
    Library::instance().wait("team_destroy", [team] {
      shmem_team_destroy(shmemx_team_by_number(team));
      return 0;
    });
  });
  module.def("barrier", [](int team) {
    Library::instance().wait("barrier", [team] {
      shmemx_team_barrier(shmemx_team_by_number(team));
      return 0;
    });
  });
  module.def("register_memory", [](std::uintptr_t address, std::size_t bytes, int fd, std::uint64_t offset) {
    Library::instance().wait("register", [=] {
      // NOLINTNEXTLINE(performance-no-int-to-ptr): NumPy's
      return shmemx_memory_register(reinterpret_cast<void*>(address), bytes, fd, offset);
    });
  });
  module.def("unregister_memory", [](std::uintptr_t address) {
    Library::instance().wait("unregister", [=] {
      return shmemx_memory_unregister(reinterpret_cast<void*>(address));  // NOLINT(performance-no-int-to-ptr): NumPy's
    });
  });
  module.def("is_symmetric", [](std::uintptr_t address, std::size_t bytes) {
    Library::instance().require("is_symmetric");
    const auto* begin = reinterpret_cast<const std::byte*>(address);  // NOLINT(performance-no-int-to-ptr): NumPy's
    const int me = shmem_my_pe();
    return shmem_addr_accessible(begin, me) == 1 && (bytes == 0 || shmem_addr_accessible(begin + bytes - 1, me) == 1);
  });
}

void bind_blocks(py::module_& module) {
  py::enum_<Block::State>(module, "State")
      .value("LIVE", Block::State::kLive)
      .value("FREED", Block::State::kFreed)
      .value("FINALIZED", Block::State::kFinalized);
  py::class_<Block, std::shared_ptr<Block>>(module, "Block")
      .def_property_readonly("state", &Block::state)
      .def_property_readonly("size", &Block::size)
      .def_property_readonly("address",
                             [](const Block& block) { return reinterpret_cast<std::uintptr_t>(block.address()); })
      .def("free", &Block::free)
      .def("array", &Block::array);
  module.def("block_at", [](std::uintptr_t address) {
    return Library::instance().block_at(
        reinterpret_cast<const std::byte*>(address));  // NOLINT(performance-no-int-to-ptr)
  });
  module.def("allocate", [](std::size_t bytes, bool zero) { return Library::instance().allocate(bytes, zero); });
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "The base of shmem_kv; not for users.";
  shmem_python::watch_interpreter_exit();
  HeldMessages::begin();
  bind_library(module);
  bind_blocks(module);
  bind_kv(module);
  py::module_ ascend = module.def_submodule("ascend");
  bind_ascend(ascend);
}
