// SPDX-License-Identifier: Apache-2.0
#include "python/core/exchange.hpp"

#include <pybind11/stl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <mutex>

namespace shmem_kv {

Keys keys_of(const py::tuple& given) {
  Keys keys;
  keys.reserve(given.size());
  for (py::handle key : given) {
    char* data = nullptr;
    py::ssize_t bytes = 0;
    if (PyBytes_AsStringAndSize(key.ptr(), &data, &bytes) != 0) {
      throw py::error_already_set();
    }
    keys.push_back({.data = data, .bytes = static_cast<std::size_t>(bytes)});
  }
  return keys;
}

void raise_exchange_error(const Outcome& outcome) {
  // Python's code gives up Python's lock now and then: the interpreter must not exit meanwhile, as for a return.
  const shmem_python::PythonWork raising;
  if (!raising.may_run()) {
    shmem_python::stay_if_interpreter_exits();
  }
  const py::object error =
      py::module_::import("shmem_kv._exchange_errors").attr("error_of")(-outcome.error, outcome.text);
  PyErr_SetObject(py::type::of(error).ptr(), error.ptr());
  throw py::error_already_set();
}

// ---- Found blocks ----

std::shared_ptr<Found> Found::select(const std::vector<std::size_t>& indices) const {
  std::vector<shmemx_exchange_block_t> chosen;
  for (const std::size_t index : indices) {
    if (index >= blocks_.size()) {
      throw py::index_error("there are " + std::to_string(blocks_.size()) + " blocks");
    }
    chosen.push_back(blocks_[index]);
    chosen.back().lease = 0;  // only one Found releases it
  }
  return std::make_shared<Found>(std::move(chosen));
}

int Found::first_of_other_size(const Buffers& destinations) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].member != 0 && blocks_[i].bytes != destinations.size(i)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

// ---- Pulls ----

Request::Request(Found& found, std::shared_ptr<Buffers> destinations)
    : buffers_(std::move(destinations)), all_(found.count()) {
  for (std::size_t i = 0; i < found.count(); ++i) {
    const shmemx_exchange_block_t& block = found.blocks()[i];
    all_[i] = block.status;
    if (block.member != 0) {
      blocks_.push_back(block);
      destinations_.push_back(buffers_->address(i));
      places_.push_back(i);
    }
  }
  statuses_.assign(blocks_.size(), -ECANCELED);  // of a call that sets none
}

int Request::pull(shmemx_exchange_t* exchange, shmemx_exchange_transfer_t** transfer) {
  return shmemx_exchange_pull(exchange, blocks_.data(), destinations_.data(), blocks_.size(), statuses_.data(),
                              transfer);
}

py::array Request::statuses() const {
  py::array_t<std::int32_t> statuses(static_cast<py::ssize_t>(all_.size()), all_.data());
  for (std::size_t i = 0; i < places_.size(); ++i) {
    statuses.mutable_data()[places_[i]] = statuses_[i];
  }
  return statuses;
}

Transfer::~Transfer() {
  const shmem_python::WithoutPython released;
  shmemx_exchange_transfer_free(handle_);
}

bool Transfer::test() const {
  const int outcome = shmemx_exchange_test(handle_);
  if (outcome == -EPERM) {
    throw std::runtime_error("this process was forked from the one that began the transfer");
  }
  return outcome != -EINPROGRESS;
}

bool Transfer::wait(std::uint64_t timeout_ns) const {
  constexpr std::uint64_t kSlice = 100'000'000;  // between two looks at signals, such as that of Ctrl-C
  std::uint64_t left = timeout_ns;
  while (!test()) {
    if (left == 0) {
      return false;
    }
    const std::uint64_t slice = std::min(left, kSlice);
    attempt_exchange([&] { return shmemx_exchange_wait(handle_, slice); });
    left -= slice;
    if (PyErr_CheckSignals() != 0) {
      throw py::error_already_set();
    }
  }
  return true;
}

int Transfer::error() const {
  return std::min(shmemx_exchange_test(handle_), 0);
}

// ---- A member ----

void Exchange::require_process() const {
  if (::getpid() != owner_) {
    throw std::runtime_error("this process was forked from a member of the exchange, and is not a member itself");
  }
}

Exchange::Exchange(const std::string& name, const shmemx_exchange_options_t& options) : owner_(::getpid()) {
  const Outcome outcome = attempt_exchange([&] { return shmemx_exchange_open(name.c_str(), &options, &exchange_); });
  if (outcome.error < 0) {
    raise_exchange_error(outcome);
  }
}

Exchange::~Exchange() {
  close();
}

void Exchange::close() {
  const shmem_python::WithoutPython released;
  closing_ = true;
  if (::getpid() != owner_) {
    return;  // the mutex may be held by a thread that there is not in this process
  }
  const std::unique_lock lock(mutex_);
  shmemx_exchange_close(std::exchange(exchange_, nullptr));
}

std::uint32_t Exchange::register_file(int file, std::size_t bytes, std::int64_t offset) {
  shmemx_memory_t memory{.address = nullptr, .bytes = bytes, .fd = file, .offset = offset};
  std::uint32_t region = 0;
  use([&](shmemx_exchange_t* exchange) { return shmemx_exchange_register(exchange, &memory, &region); });
  return region;
}

void Exchange::unregister(std::uint32_t region) {
  use([&](shmemx_exchange_t* exchange) { return shmemx_exchange_unregister(exchange, region); });
}

py::array Exchange::publish(const py::tuple& keys, const Numbers& places) {
  if (places.ndim() != 2 || places.shape(1) != 4 || places.shape(0) != static_cast<py::ssize_t>(keys.size())) {
    throw py::value_error("publish: the places are not a row of 4 numbers for each key");
  }
  const Keys names = keys_of(keys);
  std::vector<shmemx_exchange_entry_t> entries;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::uint64_t* const row = places.data(static_cast<py::ssize_t>(i), 0);
    entries.push_back({.key = names[i],
                       .region = static_cast<std::uint32_t>(row[0]),
                       .status = 0,
                       .offset = row[1],
                       .bytes = row[2],
                       .layout = row[3]});
  }
  use([&](shmemx_exchange_t* exchange) { return shmemx_exchange_publish(exchange, entries.data(), entries.size()); });
  py::array_t<std::int32_t> statuses(static_cast<py::ssize_t>(entries.size()));
  std::transform(entries.begin(), entries.end(), statuses.mutable_data(),
                 [](const shmemx_exchange_entry_t& entry) { return entry.status; });
  return statuses;
}

void Exchange::withdraw(const py::tuple& keys, std::uint64_t timeout_ns) {
  const Keys names = keys_of(keys);
  use([&](shmemx_exchange_t* exchange) {
    return shmemx_exchange_withdraw(exchange, names.data(), names.size(), timeout_ns);
  });
}

std::shared_ptr<Found> Exchange::find(const py::tuple& keys, std::uint64_t layout, std::uint32_t lease_ms) {
  const Keys names = keys_of(keys);
  std::vector<shmemx_exchange_block_t> blocks(names.size());
  use([&](shmemx_exchange_t* exchange) {
    return shmemx_exchange_find(exchange, names.data(), names.size(), layout, lease_ms, blocks.data());
  });
  return std::make_shared<Found>(std::move(blocks));
}

void Exchange::release(Found& found) {
  // Taken out first, so that no other thread releases them again.
  std::vector<shmemx_exchange_block_t> leased = found.blocks();
  for (auto& block : found.blocks()) {
    block.lease = 0;
  }
  use([&](shmemx_exchange_t* exchange) { return shmemx_exchange_release(exchange, leased.data(), leased.size()); });
}

py::array Exchange::pull(Found& found, const std::shared_ptr<Buffers>& destinations) {
  Request request(found, destinations);
  // The statuses say what has failed.
  attempt_here([&](shmemx_exchange_t* exchange) { return request.pull(exchange, nullptr); });
  return request.statuses();
}

std::shared_ptr<Transfer> Exchange::start_pull(Found& found, const std::shared_ptr<Buffers>& destinations) {
  auto request = std::make_unique<Request>(found, destinations);
  shmemx_exchange_transfer_t* handle = nullptr;
  use([&](shmemx_exchange_t* exchange) { return request->pull(exchange, &handle); });
  return std::make_shared<Transfer>(std::move(request), handle);
}

void Exchange::connect(const std::optional<std::string>& listen, const std::string& addresses,
                       const std::optional<std::string>& secret, std::uint32_t answer_ms) {
  const shmemx_exchange_network_t network{.listen = listen ? listen->c_str() : nullptr,
                                          .members = addresses.c_str(),
                                          .secret = secret ? secret->c_str() : nullptr,
                                          .answer_ms = answer_ms,
                                          .reserved = {}};
  use([&](shmemx_exchange_t* exchange) { return shmemx_exchange_connect(exchange, &network); });
}

std::string Exchange::address() {
  std::array<char, 64> text{};
  use([&](shmemx_exchange_t* exchange) { return shmemx_exchange_address(exchange, text.data(), text.size()); });
  return text.data();
}

py::list Exchange::members() {
  std::vector<shmemx_exchange_member_t> members(std::size_t{SHMEMX_EXCHANGE_MOST_MEMBERS} +
                                                SHMEMX_EXCHANGE_MOST_REMOTE_MEMBERS);
  const int count = use(
      [&](shmemx_exchange_t* exchange) { return shmemx_exchange_members(exchange, members.data(), members.size()); });
  members.resize(std::min(members.size(), static_cast<std::size_t>(count)));
  py::list rows;
  for (const auto& member : members) {
    rows.append(py::make_tuple(member.seat, member.id, member.pid, member.blocks, member.bytes, member.most_blocks,
                               member.refusals));
  }
  return rows;
}

py::tuple Exchange::list_blocks(std::uint32_t seat, std::uint64_t cursor, std::size_t capacity) {
  std::vector<shmemx_exchange_name_t> names(capacity);
  std::vector<shmemx_exchange_block_t> blocks(capacity);
  const int count = use([&](shmemx_exchange_t* exchange) {
    return shmemx_exchange_list(exchange, seat, &cursor, names.data(), blocks.data(), capacity);
  });
  blocks.resize(static_cast<std::size_t>(count));
  py::list keys;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    keys.append(py::bytes(reinterpret_cast<const char*>(names[i].data), names[i].bytes));
  }
  return py::make_tuple(cursor, keys, std::make_shared<Found>(std::move(blocks)));
}

namespace {

py::dict to_dict(const shmemx_exchange_stats_t& stats) {
  py::dict values;
  const std::pair<const char*, std::uint64_t> all[] = {{"members", stats.members},
                                                       {"readers", stats.readers},
                                                       {"seat", stats.seat},
                                                       {"id", stats.id},
                                                       {"blocks", stats.blocks},
                                                       {"bytes", stats.bytes},
                                                       {"published", stats.published},
                                                       {"withdrawn", stats.withdrawn},
                                                       {"leases_expired", stats.leases_expired},
                                                       {"refused", stats.refused},
                                                       {"found", stats.found},
                                                       {"missed", stats.missed},
                                                       {"pulled_blocks", stats.pulled_blocks},
                                                       {"pulled_bytes", stats.pulled_bytes},
                                                       {"failed_stale", stats.failed_stale},
                                                       {"failed_dead", stats.failed_dead},
                                                       {"failed_corrupt", stats.failed_corrupt},
                                                       {"failed_other", stats.failed_other},
                                                       {"over_quota", stats.over_quota},
                                                       {"metrics_port", stats.metrics_port},
                                                       {"failed_timeout", stats.failed_timeout},
                                                       {"unreachable", stats.unreachable}};
  for (const auto& [name, value] : all) {
    values[name] = value;
  }
  return values;
}

}  // namespace

py::dict Exchange::stats() {
  shmemx_exchange_stats_t stats{};
  use([&](shmemx_exchange_t* exchange) { return shmemx_exchange_stats(exchange, &stats); });
  return to_dict(stats);
}

py::dict Exchange::member_stats(std::uint32_t seat) {
  shmemx_exchange_stats_t stats{};
  use([&](shmemx_exchange_t* exchange) { return shmemx_exchange_member_stats(exchange, seat, &stats); });
  return to_dict(stats);
}

void bind_exchange(py::module_& module) {
  using Entry = shmemx_exchange_block_t;
  py::class_<Found, std::shared_ptr<Found>>(module, "Found")
      .def_property_readonly("count", &Found::count)
      .def_property_readonly("statuses", [](const Found& found) { return found.column(&Entry::status); })
      .def_property_readonly("sizes", [](const Found& found) { return found.column(&Entry::bytes); })
      .def_property_readonly("layouts", [](const Found& found) { return found.column(&Entry::layout); })
      .def_property_readonly("members", [](const Found& found) { return found.column(&Entry::member); })
      .def_property_readonly("seats", [](const Found& found) { return found.column(&Entry::seat); })
      .def_property_readonly("epochs", [](const Found& found) { return found.column(&Entry::epoch); })
      .def_property_readonly("leases", [](const Found& found) { return found.column(&Entry::lease); })
      .def("select", &Found::select)
      .def("first_of_other_size", &Found::first_of_other_size);
  py::class_<Transfer, std::shared_ptr<Transfer>>(module, "Transfer")
      .def("test", &Transfer::test)
      .def("wait", &Transfer::wait)
      .def_property_readonly("statuses", &Transfer::statuses)
      .def_property_readonly("error", &Transfer::error);
  py::class_<Exchange, std::shared_ptr<Exchange>>(module, "Exchange")
      .def(py::init([](const std::string& name, std::uint32_t blocks, std::uint32_t leases, std::uint32_t lease_ms,
                       std::uint32_t transfers, std::uint32_t join_ms, const std::optional<std::string>& metrics,
                       const std::optional<std::string>& directory) {
        return std::make_shared<Exchange>(
            name, shmemx_exchange_options_t{.blocks = blocks,
                                            .leases = leases,
                                            .lease_ms = lease_ms,
                                            .transfers = transfers,
                                            .join_ms = join_ms,
                                            .reserved = {},
                                            .metrics = metrics ? metrics->c_str() : nullptr,
                                            .directory = directory ? directory->c_str() : nullptr});
      }))
      .def("connect", &Exchange::connect)
      .def_property_readonly("address", &Exchange::address)
      .def("close", &Exchange::close)
      .def_property_readonly("closed", &Exchange::closed)
      .def("register_file", &Exchange::register_file)
      .def("unregister", &Exchange::unregister)
      .def("publish", &Exchange::publish)
      .def("withdraw", &Exchange::withdraw)
      .def("find", &Exchange::find)
      .def("release", &Exchange::release)
      .def("pull", &Exchange::pull)
      .def("start_pull", &Exchange::start_pull)
      .def("members", &Exchange::members)
      .def("list_blocks", &Exchange::list_blocks)
      .def("stats", &Exchange::stats)
      .def("member_stats", &Exchange::member_stats, py::arg("seat"));
}

}  // namespace shmem_kv
