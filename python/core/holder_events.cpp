// SPDX-License-Identifier: Apache-2.0
#include "python/core/holder_events.hpp"

#include <cerrno>
#include <vector>

#include "python/core/exchange.hpp"

namespace shmem_kv {
namespace {

/// What a reader of events goes on after: there is no holder, it does not answer, or events are missing.
bool is_expected(int code) {
  return code == -ENOTCONN || code == -ETIMEDOUT || code == -EOWNERDEAD || code == -EOVERFLOW;
}

/// {code, holder, number, whether each is a removal, layouts, keys}: shmemx_exchange_events after `number` of `holder`.
py::tuple read_events(Exchange& exchange, std::uint64_t holder, std::uint64_t number, std::size_t capacity,
                      std::uint64_t timeout_ns) {
  shmemx_exchange_position_t position{.holder = holder, .number = number};
  std::vector<shmemx_exchange_event_t> events(capacity);
  int code = 0;
  exchange.use([&](shmemx_exchange_t* member) {
    code = shmemx_exchange_events(member, &position, events.data(), events.size(), timeout_ns);
    return is_expected(code) ? 0 : code;
  });
  events.resize(code > 0 ? static_cast<std::size_t>(code) : 0);
  py::list removals;
  py::list layouts;
  py::list keys;
  for (const auto& event : events) {
    removals.append(py::bool_(event.kind == SHMEMX_EXCHANGE_REMOVED));
    layouts.append(event.layout);
    keys.append(py::bytes(reinterpret_cast<const char*>(event.key.data), event.key.bytes));
  }
  return py::make_tuple(code, position.holder, position.number, removals, layouts, keys);
}

}  // namespace

void bind_holder_events(py::module_& module) {
  module.def("read_events", &read_events);
}

}  // namespace shmem_kv
