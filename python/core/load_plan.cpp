// SPDX-License-Identifier: Apache-2.0
// shmemx_exchange_plan for _load_plan.py, which checks and explains the arguments.
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "python/core/exchange.hpp"

namespace shmem_kv {
namespace {

using Rows = py::array_t<std::uint64_t, py::array::c_style>;

/// `members`: rows of {id, weight, room}; `loads`: rows of {member, load}. Returns the owner of each load, and moves:
/// rows of {from, to, load, key}.
std::pair<Rows, Rows> plan_loads(const Rows& members, const Rows& loads, const std::vector<py::tuple>& keys,
                                 double tolerance) {
  std::vector<shmemx_exchange_share_t> shares;
  for (py::ssize_t i = 0; i < members.shape(0); ++i) {
    shares.push_back({.member = members.at(i, 0),
                      .room = members.at(i, 2),
                      .weight = static_cast<std::uint32_t>(std::min<std::uint64_t>(members.at(i, 1), UINT32_MAX)),
                      .reserved = 0});
  }
  std::vector<std::vector<shmemx_exchange_key_t>> names;
  std::vector<shmemx_exchange_load_t> given;
  std::size_t most = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto row = static_cast<py::ssize_t>(i);
    const auto& of_load = names.emplace_back(keys_of(keys[i]));
    most += of_load.size();
    given.push_back({.member = loads.at(row, 0),
                     .load = loads.at(row, 1),
                     .keys = of_load.data(),
                     .count = of_load.size(),
                     .to = 0});
  }
  shares.reserve(1);  // not null, also if there are none
  std::vector<shmemx_exchange_move_t> moves(most);
  int count = 0;
  const Outcome outcome = attempt_exchange(
      [&] {
        return shmemx_exchange_plan(shares.data(), shares.size(), given.data(), given.size(), tolerance, moves.data(),
                                    moves.size());
      },
      &count);
  if (outcome.error < 0) {
    raise(-outcome.error, outcome.text);
  }
  Rows owners(static_cast<py::ssize_t>(given.size()));
  for (std::size_t i = 0; i < given.size(); ++i) {
    owners.mutable_data()[i] = given[i].to;
  }
  Rows rows({static_cast<py::ssize_t>(count), py::ssize_t{4}});
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const std::uint64_t row[] = {moves[i].from, moves[i].to, moves[i].load, moves[i].key};
    std::copy(std::begin(row), std::end(row), rows.mutable_data(static_cast<py::ssize_t>(i), 0));
  }
  return {owners, rows};
}

}  // namespace

void bind_load_plan(py::module_& module) {
  module.def("plan_loads", &plan_loads);
}

}  // namespace shmem_kv
