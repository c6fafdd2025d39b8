// SPDX-License-Identifier: Apache-2.0
#include "python/core/held_store.hpp"

#include <algorithm>
#include <cerrno>
#include <vector>

namespace shmem_kv {
namespace {

std::string text_of_key(const shmemx_exchange_key_t& key) {
  return {static_cast<const char*>(key.data), key.bytes};
}

/// The holder is not there, or does not answer: a store without it has no blocks and takes none.
bool is_absence(int code) {
  return code == -ENOTCONN || code == -ETIMEDOUT || code == -EOWNERDEAD;
}

}  // namespace

HeldStore::HeldStore(std::shared_ptr<Exchange> exchange, const std::string& tenant, std::uint32_t answer_ms)
    : exchange_(std::move(exchange)) {
  exchange_->use(
      [&](shmemx_exchange_t* member) { return shmemx_exchange_use_holder(member, tenant.c_str(), answer_ms); });
}

/// Keys that a call stores, as long as it lives.
class HeldStore::Storing {
 public:
  explicit Storing(HeldStore& store) : store_(store) {}
  Storing(const Storing&) = delete;
  Storing& operator=(const Storing&) = delete;
  ~Storing() {
    const std::lock_guard lock(store_.mutex_);
    std::for_each(places_.begin(), places_.end(), [&](const auto& place) { store_.storing_.erase(place); });
  }
  void add(const Keys& keys) {
    places_.reserve(keys.size());
    const std::lock_guard lock(store_.mutex_);
    std::for_each(keys.begin(), keys.end(),
                  [&](const auto& key) { places_.push_back(store_.storing_.insert(text_of_key(key))); });
  }

 private:
  HeldStore& store_;
  std::vector<std::multiset<std::string>::iterator> places_;
};

py::array HeldStore::put(const py::tuple& keys, const Buffers& sources, std::uint64_t layout) {
  const Keys names = keys_of(keys);
  if (names.size() != sources.count()) {
    throw py::value_error(std::to_string(names.size()) + " keys, but " + std::to_string(sources.count()) + " blocks");
  }
  std::vector<shmemx_exchange_put_t> puts;
  for (std::size_t i = 0; i < names.size(); ++i) {
    puts.push_back({.key = names[i],
                    .source = sources.address(i),
                    .bytes = sources.size(i),
                    .layout = layout,
                    .status = -ECANCELED,
                    .flags = 0});
  }
  {
    const std::lock_guard lock(mutex_);
    layouts_.insert(layout);
  }
  Storing storing(*this);
  storing.add(names);
  exchange_->use([&](shmemx_exchange_t* exchange) {
    const int code = shmemx_exchange_put(exchange, puts.data(), puts.size());
    const std::lock_guard lock(mutex_);
    stored_ += static_cast<std::uint64_t>(
        std::count_if(puts.begin(), puts.end(), [](const auto& put) { return put.status == 0; }));
    return is_absence(code) ? 0 : code;  // the statuses say so
  });
  py::array_t<std::int32_t> statuses(static_cast<py::ssize_t>(names.size()));
  std::transform(puts.begin(), puts.end(), statuses.mutable_data(),
                 [](const auto& put) { return put.status == -EEXIST ? 0 : put.status; });
  return statuses;
}

py::array HeldStore::get(const py::tuple& keys, const Buffers& /*destinations*/, std::uint64_t layout) {
  exchange_->require_process();
  py::array_t<std::int32_t> statuses(static_cast<py::ssize_t>(keys.size()));
  std::fill_n(statuses.mutable_data(), keys.size(), -ENOENT);
  const std::lock_guard lock(mutex_);
  layouts_.insert(layout);
  return statuses;
}

void HeldStore::note_others(std::uint64_t arrived, std::uint64_t missed) {
  const std::lock_guard lock(mutex_);
  remote_ += arrived;
  missed_ += missed;
}

py::array_t<bool> HeldStore::find(const Keys& keys, std::uint64_t layout) {
  std::vector<shmemx_exchange_block_t> blocks(keys.size());
  exchange_->use([&](shmemx_exchange_t* exchange) {
    return shmemx_exchange_find(exchange, keys.data(), keys.size(), layout, 0, blocks.data());
  });
  py::array_t<bool> there(static_cast<py::ssize_t>(keys.size()));
  std::transform(blocks.begin(), blocks.end(), there.mutable_data(),
                 [](const auto& block) { return block.status == 0; });
  return there;
}

bool HeldStore::holds(const py::bytes& key, std::uint64_t layout) {
  return find(keys_of(py::make_tuple(key)), layout).at(0);
}

bool HeldStore::storing(const py::bytes& key) {
  exchange_->require_process();
  const std::string name = key;
  const std::lock_guard lock(mutex_);
  return storing_.contains(name);
}

py::array HeldStore::contains(const py::tuple& keys, std::uint64_t layout) {
  return find(keys_of(keys), layout);
}

void HeldStore::touch(const py::tuple& keys) {
  std::set<std::uint64_t> layouts;
  {
    const std::lock_guard lock(mutex_);
    layouts = layouts_;
  }
  for (const std::uint64_t layout : layouts) {
    find(keys_of(keys), layout);
  }
}

py::array HeldStore::discard(const py::tuple& keys) {
  const Keys names = keys_of(keys);
  std::set<std::uint64_t> layouts;
  {
    const std::lock_guard lock(mutex_);
    layouts = layouts_;
  }
  py::array_t<bool> gone(static_cast<py::ssize_t>(names.size()));
  std::fill_n(gone.mutable_data(), names.size(), false);
  std::vector<std::int32_t> statuses(names.size());
  for (const std::uint64_t layout : layouts) {
    exchange_->use([&](shmemx_exchange_t* exchange) {
      const int code = shmemx_exchange_discard(exchange, names.data(), names.size(), layout, statuses.data());
      return is_absence(code) ? 0 : code;
    });
    for (std::size_t i = 0; i < names.size(); ++i) {
      gone.mutable_data()[i] = gone.mutable_data()[i] || statuses[i] == 0;
    }
  }
  return gone;
}

void HeldStore::clear() {
  exchange_->use([](shmemx_exchange_t* exchange) { return shmemx_exchange_discard_all(exchange); });
}

py::tuple HeldStore::stats() {
  shmemx_exchange_holder_stats_t held{};
  exchange_->use([&](shmemx_exchange_t* exchange) {
    const int code = shmemx_exchange_holder_stats(exchange, &held);
    return is_absence(code) ? 0 : code;
  });
  const std::lock_guard lock(mutex_);
  return py::make_tuple(held.blocks, held.bytes, held.capacity, stored_, held.evicted + held.discarded, 0, remote_,
                        missed_);
}

void bind_held_store(py::module_& module) {
  py::class_<HeldStore, std::shared_ptr<HeldStore>>(module, "HeldStore")
      .def(py::init<std::shared_ptr<Exchange>, const std::string&, std::uint32_t>())
      .def("put", &HeldStore::put)
      .def("get", &HeldStore::get)
      .def("note_others", &HeldStore::note_others)
      .def("holds", &HeldStore::holds)
      .def("storing", &HeldStore::storing)
      .def("contains", &HeldStore::contains)
      .def("touch", &HeldStore::touch)
      .def("discard", &HeldStore::discard)
      .def("clear", &HeldStore::clear)
      .def("stats", &HeldStore::stats);
}

}  // namespace shmem_kv
