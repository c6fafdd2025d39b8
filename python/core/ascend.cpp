// SPDX-License-Identifier: Apache-2.0
// The calls of Ascend SHMEM's Python package that act on addresses, for the package shmem. The job and its memory are
// those of shmem_kv; addresses and streams are numbers, as there.
#include <aclshmem.h>
#include <ascend/cann/acl/acl.h>
#include <pybind11/stl.h>

#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "python/core/interpreter_exit.hpp"
#include "python/core/library.hpp"

namespace {

using namespace shmem_kv;

using Address = std::uintptr_t;
using Stream = std::optional<Address>;  // None and 0: the default stream

template <typename T = void>
T* at(Address address) {
  return reinterpret_cast<T*>(address);  // NOLINT(performance-no-int-to-ptr): the package's
}

aclrtStream queue(const Stream& stream) {
  return at(stream.value_or(0));
}

/// Copies, signals and barriers: `call` returns nothing.
template <typename Call>
void act(const char* name, Call call) {
  Library::instance().wait(name, [&call] {
    call();
    return 0;
  });
}

/// For calls that return a code: prints what went wrong.
int code_of(const char* name, const Outcome& outcome) {
  if (outcome.error != 0) {
    std::fprintf(stderr, "shmem: %s: %s\n", name, outcome.text.c_str());
  }
  return aclshmemi_code(outcome.error);
}

// ---- Start and end ----

/// The live blocks by address, for aclshmem_free.
std::map<Address, std::shared_ptr<Block>>& blocks() {
  static auto* const all = std::make_unique<std::map<Address, std::shared_ptr<Block>>>().release();
  return *all;
}

void start_by_id(int rank, int ranks, std::size_t bytes, const std::string& id) {
  // A program that sends the id in a larger buffer sends zeros after it.
  const std::size_t size = sizeof(shmemx_uniqueid_t);
  if (id.size() < size) {
    throw py::value_error("init: the unique id has " + std::to_string(id.size()) + " bytes, not " +
                          std::to_string(size));
  }
  if (bytes == 0) {
    throw py::value_error("init: mem_size is 0");
  }
  Library::instance().start({.heap_size = bytes, .unique_id = id.substr(0, size), .my_pe = rank, .pes = ranks});
}

int start_by_address(const aclshmemx_init_attr_t& attributes) {
  if (const int wrong = aclshmemi_check_attr(&attributes); wrong != ACLSHMEM_SUCCESS) {
    std::fprintf(stderr,
                 "shmem: aclshmem_init: the number of a PE, their number, local_mem_size (%llu), a time limit or "
                 "the engine is not valid\n",
                 static_cast<unsigned long long>(attributes.local_mem_size));
    return wrong;
  }
  return code_of("aclshmem_init",
                 Library::instance().try_start({.heap_size = attributes.local_mem_size,
                                                .my_pe = attributes.my_pe,
                                                .pes = attributes.n_pes,
                                                .address = static_cast<const char*>(attributes.ip_port),
                                                .seconds = attributes.option_attr.shm_init_timeout}));
}

/// Messages of the library go to a Python function. Its threads may have some at any time.
void set_logger(const py::object& function) {
  static auto* const logger = std::make_unique<py::object>().release();  // never destroyed: see above
  if (function.is_none()) {
    HeldMessages::begin();
    return;
  }
  if (PyCallable_Check(function.ptr()) == 0) {
    throw py::type_error("set_extern_logger: func is not a function");
  }
  *logger = function;
  shmemx_set_logger([](int level, const char* text) {
    const shmem_python::PythonWork work;
    if (!work.may_run()) {
      return;
    }
    const py::gil_scoped_acquire held;
    try {
      (*logger)(level, text);
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("shmem: the function of set_extern_logger");
    }
  });
}

void bind_attributes(py::module_& module) {
  py::enum_<data_op_engine_type_t>(module, "OpEngineType")
      .value("MTE", ACLSHMEM_DATA_OP_MTE)
      .value("SDMA", ACLSHMEM_DATA_OP_SDMA)
      .value("ROCE", ACLSHMEM_DATA_OP_ROCE)
      .value("UDMA", ACLSHMEM_DATA_OP_UDMA);
  using Options = aclshmem_init_optional_attr_t;
  py::class_<Options>(module, "OptionalAttr")
      .def(py::init([] { return Options ACLSHMEM_INIT_OPTIONAL_ATTR_INITIALIZER; }))
      .def_readwrite("version", &Options::version)
      .def_readwrite("data_op_engine_type", &Options::data_op_engine_type)
      .def_readwrite("shm_init_timeout", &Options::shm_init_timeout)
      .def_readwrite("shm_create_timeout", &Options::shm_create_timeout)
      .def_readwrite("control_operation_timeout", &Options::control_operation_timeout)
      .def_readwrite("sockFd", &Options::sockFd);
  using Attributes = aclshmemx_init_attr_t;
  py::class_<Attributes>(module, "InitAttr")
      .def(py::init<>())
      .def_readwrite("my_rank", &Attributes::my_pe)
      .def_readwrite("n_ranks", &Attributes::n_pes)
      .def_property(
          "ip_port", [](const Attributes& all) { return std::string(static_cast<const char*>(all.ip_port)); },
          [](Attributes& all, const std::string& value) {
            if (value.size() >= sizeof all.ip_port) {
              throw py::value_error("ip_port: '" + value + "' has more than " + std::to_string(sizeof all.ip_port - 1) +
                                    " characters");
            }
            std::copy_n(value.c_str(), value.size() + 1, static_cast<char*>(all.ip_port));
          })
      .def_readwrite("local_mem_size", &Attributes::local_mem_size)
      .def_readwrite("option_attr", &Attributes::option_attr);
  py::class_<aclshmem_team_config_t>(module, "TeamConfig")
      .def(py::init<>())
      .def_readwrite("num_contexts", &aclshmem_team_config_t::num_contexts);
}

void bind_start(py::module_& module) {
  enum class Status { kNo, kCreated, kYes = ACLSHMEM_STATUS_IS_INITIALIZED, kInvalid = ACLSHMEM_STATUS_INVALID };
  py::enum_<Status>(module, "InitStatus")
      .value("NOT_INITIALIZED", Status::kNo)
      .value("SHM_CREATED", Status::kCreated)
      .value("INITIALIZED", Status::kYes)
      .value("INVALID", Status::kInvalid);
  module.def("aclshmemx_init_status", [] { return static_cast<Status>(aclshmemx_init_status()); });
  module.def("aclshmem_get_unique_id", [] { return py::bytes(make_unique_id()); });
  module.def("start",
             [](int rank, int ranks, std::size_t bytes, const py::bytes& id) { start_by_id(rank, ranks, bytes, id); });
  module.def("aclshmem_init", &start_by_address, py::arg("attributes"));
  module.def("forget_memory", [] {
    Library::instance().check_may_stop();
    blocks().clear();
  });
  module.def("set_logger", &set_logger, py::arg("func"));
  module.def("aclshmem_global_exit", &aclshmem_global_exit, py::arg("status"));
  module.def("aclshmem_info_get_version", [] {
    std::pair<int, int> version;
    aclshmem_info_get_version(&version.first, &version.second);
    return version;
  });
  module.def("aclshmem_info_get_name", [] {
    std::array<char, ACLSHMEM_MAX_NAME_LEN> name{};
    aclshmem_info_get_name(name.data());
    return std::string(name.data());
  });
  module.def("get_ffts_config", &util_get_ffts_config);
  module.def("set_log_level", &aclshmemx_set_log_level, py::arg("level"));
  module.def(
      "set_conf_store_tls",
      [](bool enable, const std::string& info) {
        const int code = aclshmemx_set_conf_store_tls(enable, info.c_str(), static_cast<std::uint32_t>(info.size()));
        return code_of("set_conf_store_tls", {code == 0 ? 0 : -ENOTSUP, code == 0 ? "" : shmemx_error_text()});
      },
      py::arg("enable"), py::arg("tls_info"));
  module.def(
      "set_conf_store_tls_key",
      [](const std::string&, const std::string&, const py::object&) {
        aclshmemx_set_config_store_tls_key(nullptr, 0, nullptr, 0, nullptr);
        return code_of("set_conf_store_tls_key", {-ENOTSUP, shmemx_error_text()});
      },
      py::arg("tls_pk"), py::arg("tls_pk_pw"), py::arg("py_decrypt_func"));
}

// ---- Memory and teams ----

/// Collective calls begin when the work of the default stream is done.
void await_default_stream() {
  const shmem_python::WithoutPython released;
  shmemx_await_default_stream();
}

Address allocate(std::size_t bytes, bool zero, std::size_t alignment = 0) {
  Library::instance().require("allocate");
  if (bytes == 0) {
    throw py::value_error("allocate: 0 bytes");
  }
  await_default_stream();
  const auto block = Library::instance().allocate(bytes, zero, alignment);
  const auto address = reinterpret_cast<Address>(block->address());
  blocks()[address] = block;
  return address;
}

void free_memory(Address address) {
  Library::instance().require("free");
  const auto found = blocks().find(address);
  if (found == blocks().end()) {
    throw py::value_error("aclshmem_free: no memory was allocated at this address, or it was freed before");
  }
  const auto block = found->second;
  blocks().erase(found);
  await_default_stream();
  block->free();
}

void bind_memory(py::module_& module) {
  module.def(
      "aclshmem_malloc", [](std::size_t size) { return allocate(size, false); }, py::arg("size"));
  module.def(
      "aclshmem_calloc",
      [](std::size_t count, std::size_t size) {
        std::size_t bytes = 0;
        if (__builtin_mul_overflow(count, size, &bytes)) {
          throw py::value_error("aclshmem_calloc: nmemb * size is too large");
        }
        return allocate(bytes, true);
      },
      py::arg("nmemb"), py::arg("size"));
  module.def(
      "aclshmem_align", [](std::size_t alignment, std::size_t size) { return allocate(size, false, alignment); },
      py::arg("alignment"), py::arg("size"));
  module.def("aclshmem_free", &free_memory, py::arg("ptr"));
  module.def(
      "aclshmem_ptr", [](Address address, int pe) { return reinterpret_cast<Address>(aclshmem_ptr(at(address), pe)); },
      py::arg("ptr"), py::arg("peer"));
  module.def("aclshmemx_get_heap_base", [] { return reinterpret_cast<Address>(aclshmemx_get_heap_base(DEVICE_SIDE)); });
}

std::pair<int, int> split_2d(int parent, int x_range) {
  std::pair<aclshmem_team_t, aclshmem_team_t> made;
  Library::instance().wait("team_split_2d", [&] {
    shmemx_await_default_stream();
    std::array<shmem_team_t, 2> teams = {SHMEM_TEAM_INVALID, SHMEM_TEAM_INVALID};
    const int error = shmemx_team_split_2d(shmemx_team_by_number(parent), x_range, teams.data(), &teams[1]);
    made = {shmemx_team_number(teams[0]), shmemx_team_number(teams[1])};
    return error;
  });
  return made;
}

void bind_teams(py::module_& module) {
  module.def("my_pe", [] { return aclshmem_my_pe(); });
  module.def("my_pe", &aclshmem_team_my_pe, py::arg("team"));
  module.def("pe_count", [] { return aclshmem_n_pes(); });
  module.def("pe_count", &aclshmem_team_n_pes, py::arg("team"));
  module.def("team_my_pe", &aclshmem_team_my_pe, py::arg("team_id"));
  module.def("team_n_pes", &aclshmem_team_n_pes, py::arg("team_id"));
  module.def(
      "team_split_strided",
      [](int parent, int start, int stride, int size) {
        shmem_team_t made = SHMEM_TEAM_INVALID;
        Library::instance().wait("team_split_strided", [&] {
          shmemx_await_default_stream();
          return shmemx_team_split_strided(shmemx_team_by_number(parent), start, stride, size, &made);
        });
        return shmemx_team_number(made);
      },
      py::arg("parent"), py::arg("start"), py::arg("stride"), py::arg("size"));
  module.def("team_split_2d", &split_2d, py::arg("parent"), py::arg("x_range"));
  module.def("team_translate_pe", &aclshmem_team_translate_pe, py::arg("src_team"), py::arg("src_pe"),
             py::arg("dest_team"));
  module.def("aclshmem_team_get_config", &aclshmem_team_get_config, py::arg("team"), py::arg("config"));
  module.def(
      "team_destroy", [](int team) { act("team_destroy", [team] { aclshmem_team_destroy(team); }); }, py::arg("team"));
}

// ---- Copies, signals and barriers ----

using Copy = void (*)(void*, const void*, std::size_t, int);

template <Copy copy>
void bind_copy(py::module_& module, const char* name) {
  module.def(
      name,
      [name](Address dst, Address src, std::size_t bytes, int pe) {
        act(name, [=] { copy(at(dst), at(src), bytes, pe); });
      },
      py::arg("dst"), py::arg("src"), py::arg("elem_size"), py::arg("pe"));
}

using StreamCopy = void (*)(void*, const void*, std::size_t, int, aclrtStream);

template <StreamCopy copy>
void bind_stream_copy(py::module_& module, const char* name) {
  module.def(
      name,
      [name](Address dst, Address src, std::size_t bytes, int pe, Stream stream) {
        act(name, [=] { copy(at(dst), at(src), bytes, pe, queue(stream)); });
      },
      py::arg("dst"), py::arg("src"), py::arg("elem_size"), py::arg("pe"), py::arg("stream"));
}

using SignalledCopy = void (*)(void*, const void*, std::size_t, void*, std::int32_t, int, int);

template <SignalledCopy copy>
void bind_signalled_copy(py::module_& module, const char* name) {
  module.def(
      name,
      [name](Address dst, Address src, std::size_t bytes, Address sig, std::int32_t signal, int sig_op, int pe) {
        act(name, [=] { copy(at(dst), at(src), bytes, at(sig), signal, sig_op, pe); });
      },
      py::arg("dst"), py::arg("src"), py::arg("elem_size"), py::arg("sig"), py::arg("signal"), py::arg("sig_op"),
      py::arg("pe"));
}

void bind_copies(py::module_& module) {
  bind_copy<&aclshmem_putmem>(module, "aclshmem_putmem");
  bind_copy<&aclshmem_getmem>(module, "aclshmem_getmem");
  bind_copy<&aclshmem_putmem_nbi>(module, "aclshmem_putmem_nbi");
  bind_copy<&aclshmem_getmem_nbi>(module, "aclshmem_getmem_nbi");
  bind_stream_copy<&aclshmemx_putmem_on_stream>(module, "aclshmemx_putmem_on_stream");
  bind_stream_copy<&aclshmemx_getmem_on_stream>(module, "aclshmemx_getmem_on_stream");
  bind_signalled_copy<&aclshmemx_putmem_signal>(module, "aclshmemx_putmem_signal");
  bind_signalled_copy<&aclshmemx_putmem_signal_nbi>(module, "aclshmemx_putmem_signal_nbi");
#define BIND_ONE(NAME, T)                                                                  \
  module.def(                                                                              \
      "aclshmem_" #NAME "_p",                                                              \
      [](Address dst, T value, int pe) {                                                   \
        act("aclshmem_" #NAME "_p", [=] { aclshmem_##NAME##_p(at<T>(dst), value, pe); });  \
      },                                                                                   \
      py::arg("dst"), py::arg("value"), py::arg("pe"));                                    \
  module.def(                                                                              \
      "aclshmem_" #NAME "_g",                                                              \
      [](Address src, int pe) {                                                            \
        T value{};                                                                         \
        act("aclshmem_" #NAME "_g", [&] { value = aclshmem_##NAME##_g(at<T>(src), pe); }); \
        return value;                                                                      \
      },                                                                                   \
      py::arg("src"), py::arg("pe"));
  ACLSHMEM_HOST_TYPES(BIND_ONE)
#undef BIND_ONE
}

void bind_signals(py::module_& module) {
  // The numbers of the calls above accept these.
  enum class SignalOp { kSet = ACLSHMEM_SIGNAL_SET, kAdd = ACLSHMEM_SIGNAL_ADD };
  py::enum_<SignalOp>(module, "SignalOp", py::arithmetic())
      .value("SIGNAL_SET", SignalOp::kSet)
      .value("SIGNAL_ADD", SignalOp::kAdd);
  enum class CmpOp {
    kEq = ACLSHMEM_CMP_EQ,
    kNe = ACLSHMEM_CMP_NE,
    kGt = ACLSHMEM_CMP_GT,
    kGe = ACLSHMEM_CMP_GE,
    kLt = ACLSHMEM_CMP_LT,
    kLe = ACLSHMEM_CMP_LE
  };
  py::enum_<CmpOp>(module, "CmpOp", py::arithmetic())
      .value("CMP_EQ", CmpOp::kEq)
      .value("CMP_NE", CmpOp::kNe)
      .value("CMP_GT", CmpOp::kGt)
      .value("CMP_GE", CmpOp::kGe)
      .value("CMP_LT", CmpOp::kLt)
      .value("CMP_LE", CmpOp::kLe);
  module.def(
      "aclshmemx_signal_op_on_stream",
      [](Address sig, std::int32_t signal, int sig_op, int pe, Stream stream) {
        act("aclshmemx_signal_op_on_stream",
            [=] { aclshmemx_signal_op_on_stream(at<std::int32_t>(sig), signal, sig_op, pe, queue(stream)); });
      },
      py::arg("sig_addr"), py::arg("signal"), py::arg("sig_op"), py::arg("pe"), py::arg("stream"));
  module.def(
      "aclshmemx_signal_wait_until_on_stream",
      [](Address sig, int cmp, std::int32_t value, Stream stream) {
        act("aclshmemx_signal_wait_until_on_stream",
            [=] { aclshmemx_signal_wait_until_on_stream(at<std::int32_t>(sig), cmp, value, queue(stream)); });
      },
      py::arg("sig_addr"), py::arg("cmp"), py::arg("cmp_val"), py::arg("stream"));
  module.def(
      "aclshmem_signal_wait_until",
      [](Address sig, int cmp, std::int32_t value) {
        act("aclshmem_signal_wait_until", [=] { aclshmem_signal_wait_until(at<std::int32_t>(sig), cmp, value); });
      },
      py::arg("sig_addr"), py::arg("cmp"), py::arg("cmp_val"));
}

void bind_barriers(py::module_& module) {
  module.def("aclshmem_barrier_all", [] { act("aclshmem_barrier_all", [] { aclshmem_barrier_all(); }); });
  module.def(
      "aclshmem_barrier", [](int team) { act("aclshmem_barrier", [team] { aclshmem_barrier(team); }); },
      py::arg("team"));
  module.def(
      "aclshmemx_barrier_on_stream",
      [](int team, Stream stream) {
        act("aclshmemx_barrier_on_stream", [=] { aclshmemx_barrier_on_stream(team, queue(stream)); });
      },
      py::arg("team"), py::arg("stream"));
  module.def(
      "aclshmemx_quiet_on_stream",
      [](Stream stream) { act("aclshmemx_quiet_on_stream", [=] { aclshmemx_quiet_on_stream(queue(stream)); }); },
      py::arg("stream"));
  module.def(
      "synchronize_stream",
      [](Stream stream) {
        Library::instance().wait("synchronize_stream",
                                 [=] { return shmemx_stream_synchronize(at<shmemx_stream_t>(stream.value_or(0))); });
      },
      py::arg("stream"));
}

// ---- The calls of CANN's Python module acl that programs with this package use ----

/// What malloc has given and free has not taken back. Used with the GIL.
std::set<Address>& device_memory() {
  static auto* const all = std::make_unique<std::set<Address>>().release();
  return *all;
}

void bind_runtime(py::module_& rt) {
  rt.def("set_device", &aclrtSetDevice);
  rt.def("reset_device", &aclrtResetDevice);
  rt.def("create_stream", [] {
    aclrtStream stream = nullptr;
    const int code = aclrtCreateStream(&stream);
    return std::pair(reinterpret_cast<Address>(stream), code);
  });
  rt.def("destroy_stream", [](Address stream) {
    const shmem_python::WithoutPython released;
    return aclrtDestroyStream(at(stream));
  });
  rt.def("synchronize_stream", [](Address stream) {
    const shmem_python::WithoutPython released;
    return aclrtSynchronizeStream(at(stream));
  });
  rt.def("malloc", [](std::size_t size, int policy) {
    void* address = nullptr;
    const int code = aclrtMalloc(&address, size, static_cast<aclrtMemMallocPolicy>(policy));
    if (code == ACL_SUCCESS) {
      device_memory().insert(reinterpret_cast<Address>(address));
    }
    return std::pair(reinterpret_cast<Address>(address), code);
  });
  rt.def("free", [](Address address) {
    return device_memory().erase(address) != 0 ? aclrtFree(at(address)) : aclError{ACL_ERROR_RT_PARAM_INVALID};
  });
  rt.def("memset", [](Address dst, std::size_t room, int value, std::size_t count) {
    const shmem_python::WithoutPython released;
    return aclrtMemset(at(dst), room, value, count);
  });
  rt.def("memcpy", [](Address dst, std::size_t room, Address src, std::size_t count, int kind) {
    const shmem_python::WithoutPython released;
    return aclrtMemcpy(at(dst), room, at(src), count, static_cast<aclrtMemcpyKind>(kind));
  });
}

}  // namespace

namespace shmem_kv {

void bind_ascend(py::module_& module) {
  bind_attributes(module);
  bind_start(module);
  bind_memory(module);
  bind_teams(module);
  bind_copies(module);
  bind_signals(module);
  bind_barriers(module);
  py::module_ runtime = module.def_submodule("rt");
  bind_runtime(runtime);
}

}  // namespace shmem_kv
