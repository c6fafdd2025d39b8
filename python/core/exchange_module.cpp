// SPDX-License-Identifier: Apache-2.0
// shmem_kv._exchange_core: exchanges for the module's Python files, by libkvexchange alone. Not for users: names and
// arguments may change.
#include "python/core/buffers.hpp"
#include "python/core/dlpack.hpp"
#include "python/core/exchange.hpp"
#include "python/core/held_store.hpp"
#include "python/core/holder_events.hpp"
#include "python/core/interpreter_exit.hpp"
#include "python/core/store.hpp"

PYBIND11_MODULE(_exchange_core, module) {
  module.doc() = "The base of shmem_kv's exchanges; not for users.";
  shmem_python::watch_interpreter_exit();
  shmem_kv::bind_buffers(module);
  shmem_kv::bind_dlpack(module);
  shmem_kv::bind_exchange(module);
  shmem_kv::bind_store(module);
  shmem_kv::bind_held_store(module);
  shmem_kv::bind_holder_events(module);
  shmem_kv::bind_load_plan(module);
}
