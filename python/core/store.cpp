// SPDX-License-Identifier: Apache-2.0
#include "python/core/store.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace shmem_kv {
namespace {

constexpr std::size_t kMostKeyBytes = 128;

std::string text_of(const shmemx_exchange_key_t& key) {
  return {static_cast<const char*>(key.data), key.bytes};
}

void check_count(const Keys& keys, const Buffers& buffers) {
  if (keys.size() != buffers.count()) {
    throw py::value_error(std::to_string(keys.size()) + " keys, but " + std::to_string(buffers.count()) + " blocks");
  }
}

}  // namespace

Store::Store(std::shared_ptr<Exchange> exchange, std::uint32_t region, std::uintptr_t address, std::uint64_t bytes,
             std::size_t most_blocks)
    : exchange_(std::move(exchange)),
      region_(region),
      address_(address),
      capacity_(bytes),
      most_blocks_(most_blocks),
      room_(bytes) {}

// ---- Storing ----

/// One call of put(). Used without the interpreter's lock.
class Store::Put {
 public:
  /// `statuses` gets those of blocks that are not stored at once.
  Put(Store& store, shmemx_exchange_t* exchange, const Keys& keys, const Buffers& sources, std::uint64_t layout,
      std::int32_t* statuses)
      : store_(store), exchange_(exchange), keys_(keys), sources_(sources), layout_(layout), statuses_(statuses) {
    mine_.reserve(keys.size());
    others_.reserve(keys.size());
    entries_.reserve(keys.size());
  }
  Put(const Put&) = delete;
  Put& operator=(const Put&) = delete;
  /// Takes back what has not been stored: there was no memory for a later step.
  ~Put() { settle(-ENOMEM); }

  void execute() {
    {
      const std::lock_guard lock(store_.mutex_);
      store_.retry_leaving(exchange_);
    }
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const std::lock_guard lock(store_.mutex_);  // for a moment: an engine's scheduler may wait for an answer
      statuses_[i] = reserve(i);
    }
    copy();
    publish();
    wait_for_others();
  }

 private:
  /// Room for a block, or the status of one that needs none. REQUIRES: the store's mutex.
  std::int32_t reserve(std::size_t i) {
    const std::uint64_t bytes = sources_.size(i);
    if (keys_[i].bytes == 0 || keys_[i].bytes > kMostKeyBytes || bytes == 0) {
      return -EINVAL;
    }
    auto made = std::make_shared<Entry>();
    made->key = text_of(keys_[i]);
    made->bytes = bytes;
    made->layout = layout_;
    if (Entry* const there = store_.find(made->key); there != nullptr) {
      if (there->state != State::kLeaving && there->bytes == bytes && there->layout == layout_) {
        store_.used_.splice(store_.used_.end(), store_.used_, there->place);
        if (there->state == State::kStoring) {
          others_.emplace_back(i, store_.entries_.at(made->key));
        }
        return 0;
      }
      // The same key stands for another block: that one goes first.
      const bool gone = there->state == State::kLeaving
                            ? store_.end_leaving(exchange_, *there)
                            : store_.evict(exchange_, *there) && store_.find(made->key) == nullptr;
      if (!gone) {
        return -EBUSY;
      }
    }
    return add(i, std::move(made));
  }

  std::int32_t add(std::size_t i, EntryPointer made) {
    Order place{made.get()};
    if (!store_.make_room(exchange_, made->bytes, retried_, made->part)) {
      return -ENOSPC;
    }
    try {
      store_.entries_.emplace(made->key, made);
    } catch (...) {
      store_.room_.give(std::move(made->part));
      throw;
    }
    store_.used_.splice(store_.used_.end(), place);
    made->place = std::prev(store_.used_.end());
    store_.bytes_ += made->bytes;
    entries_.push_back({.key = keys_[i],
                        .region = store_.region_,
                        .status = -ECANCELED,
                        .offset = made->part.key(),
                        .bytes = made->bytes,
                        .layout = made->layout});
    mine_.emplace_back(i, std::move(made));
    return 0;
  }

  void copy() const {
    for (const auto& [i, entry] : mine_) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr): that of a mapping of Python
      std::memcpy(reinterpret_cast<void*>(store_.address_ + entry->part.key()), sources_.address(i), entry->bytes);
    }
  }

  void publish() {
    const int result = entries_.empty() ? 0 : shmemx_exchange_publish(exchange_, entries_.data(), entries_.size());
    for (std::size_t i = 0; i < mine_.size(); ++i) {
      statuses_[mine_[i].first] = result < 0 ? result : entries_[i].status;
    }
    settle(0);
  }

  /// After the blocks were copied and published, or not. `failure`: the status of all; 0: each has its own.
  void settle(std::int32_t failure) noexcept {
    const std::lock_guard lock(store_.mutex_);
    for (const auto& [i, entry] : mine_) {
      entry->status = failure != 0 ? failure : statuses_[i];
      if (entry->status == 0) {
        entry->state = State::kReady;
        ++store_.stored_;
      } else {
        store_.remove(*entry);
      }
    }
    mine_.clear();
    store_.settled_.notify_all();
  }

  /// Blocks that another call stores, or this one for an equal key: they are stored when those are. No call waits for
  /// another one before its own blocks are settled, so each ends.
  void wait_for_others() {
    std::unique_lock lock(store_.mutex_);
    for (const auto& [i, entry] : others_) {
      store_.settled_.wait(lock, [&one = *entry] { return one.state != State::kStoring; });
      statuses_[i] = entry->status;
    }
  }

  Store& store_;
  shmemx_exchange_t* const exchange_;
  const Keys& keys_;
  const Buffers& sources_;
  const std::uint64_t layout_;
  std::int32_t* const statuses_;
  bool retried_ = false;
  std::vector<std::pair<std::size_t, EntryPointer>> mine_, others_;  // by key
  std::vector<shmemx_exchange_entry_t> entries_;                     // for mine_
};

py::array Store::put(const py::tuple& keys, const Buffers& sources, std::uint64_t layout) {
  const Keys names = keys_of(keys);
  check_count(names, sources);
  py::array_t<std::int32_t> statuses(static_cast<py::ssize_t>(names.size()));
  std::int32_t* const to = statuses.mutable_data();
  exchange_->use([&](shmemx_exchange_t* exchange) {
    Put(*this, exchange, names, sources, layout, to).execute();
    return 0;
  });
  return statuses;
}

// ---- Reading ----

/// Blocks that a thread copies: they are not evicted meanwhile.
class Store::Reading {
 public:
  Reading(Store& store, const Keys& keys, const Buffers& destinations, std::uint64_t layout, std::int32_t* statuses)
      : store_(store) {
    here_.reserve(keys.size());
    const std::lock_guard lock(store.mutex_);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      Entry* const entry = store.held(text_of(keys[i]), layout);
      statuses[i] = entry == nullptr ? -ENOENT : entry->bytes != destinations.size(i) ? -EMSGSIZE : 0;
      if (statuses[i] == 0) {
        ++entry->readers;
        here_.emplace_back(i, entry);
      }
    }
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() {
    const std::lock_guard lock(store_.mutex_);
    for (const auto& [i, entry] : here_) {
      --entry->readers;
    }
    store_.local_ += here_.size();
  }

  void copy(const Buffers& destinations) const {
    for (const auto& [i, entry] : here_) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr): that of a mapping of Python
      std::memcpy(destinations.address(i), reinterpret_cast<const void*>(store_.address_ + entry->part.key()),
                  entry->bytes);
    }
  }

 private:
  Store& store_;
  std::vector<std::pair<std::size_t, Entry*>> here_;
};

py::array Store::get(const py::tuple& keys, const Buffers& destinations, std::uint64_t layout) {
  exchange_->require_process();
  const Keys names = keys_of(keys);
  check_count(names, destinations);
  py::array_t<std::int32_t> statuses(static_cast<py::ssize_t>(names.size()));
  std::int32_t* const to = statuses.mutable_data();
  {
    const shmem_python::WithoutPython released;
    Reading(*this, names, destinations, layout, to).copy(destinations);
  }
  return statuses;
}

void Store::note_others(std::uint64_t arrived, std::uint64_t missed) {
  const std::lock_guard lock(mutex_);
  remote_ += arrived;
  missed_ += missed;
}

Store::Entry* Store::find(const std::string& key) const {
  const auto found = entries_.find(key);
  return found != entries_.end() ? found->second.get() : nullptr;
}

/// Marks it as used.
Store::Entry* Store::held(const std::string& key, std::uint64_t layout) {
  Entry* const entry = find(key);
  if (entry == nullptr || entry->state != State::kReady || (layout != 0 && entry->layout != layout)) {
    return nullptr;
  }
  used_.splice(used_.end(), used_, entry->place);
  return entry;
}

bool Store::holds(const py::bytes& key, std::uint64_t layout) {
  exchange_->require_process();
  const std::string name = key;
  const std::lock_guard lock(mutex_);
  return held(name, layout) != nullptr;
}

bool Store::storing(const py::bytes& key) {
  exchange_->require_process();
  const std::string name = key;
  const std::lock_guard lock(mutex_);
  const Entry* const entry = find(name);
  return entry != nullptr && entry->state == State::kStoring;
}

py::array Store::contains(const py::tuple& keys, std::uint64_t layout) {
  exchange_->require_process();
  const Keys names = keys_of(keys);
  py::array_t<bool> there(static_cast<py::ssize_t>(names.size()));
  const std::lock_guard lock(mutex_);
  std::transform(names.begin(), names.end(), there.mutable_data(),
                 [&](const auto& name) { return held(text_of(name), layout) != nullptr; });
  return there;
}

void Store::touch(const py::tuple& keys) {
  exchange_->require_process();
  const Keys names = keys_of(keys);
  const std::lock_guard lock(mutex_);
  for (const auto& name : names) {
    held(text_of(name), 0);
  }
}

// ---- Evicting ----

py::array Store::discard(const py::tuple& keys) {
  const Keys names = keys_of(keys);
  py::array_t<bool> gone(static_cast<py::ssize_t>(names.size()));
  bool* const to = gone.mutable_data();
  exchange_->use([&](shmemx_exchange_t* exchange) {
    const std::lock_guard lock(mutex_);
    std::transform(names.begin(), names.end(), to, [&](const auto& name) {
      Entry* const entry = find(text_of(name));
      return entry != nullptr && evict(exchange, *entry);
    });
    return 0;
  });
  return gone;
}

void Store::clear() {
  exchange_->use([&](shmemx_exchange_t* exchange) {
    const std::lock_guard lock(mutex_);
    for (auto next = used_.begin(); next != used_.end();) {
      evict(exchange, **next++);
    }
    return 0;
  });
}

/// `retried`: whether this call has tried to end those that leave.
bool Store::make_room(shmemx_exchange_t* exchange, std::uint64_t bytes, bool& retried, Room::Part& part) {
  if (bytes > capacity_) {
    return false;
  }
  while (true) {
    part = entries_.size() < most_blocks_ ? room_.take(bytes) : Room::Part();
    if (!part.empty()) {
      return true;
    }
    if (evict_one(exchange)) {
      continue;
    }
    if (std::exchange(retried, true) || leaving_.empty()) {
      return false;
    }
    retry_leaving(exchange);
  }
}

/// Evicts the least recently used entry without a reader here.
bool Store::evict_one(shmemx_exchange_t* exchange) {
  const auto victim = std::find_if(used_.begin(), used_.end(), [](const Entry* entry) {
    return entry->state == State::kReady && entry->readers == 0;
  });
  return victim != used_.end() && evict(exchange, **victim);
}

/// Withdraws a block. False: it is not here, or this process uses it.
bool Store::evict(shmemx_exchange_t* exchange, Entry& entry) {
  if (entry.state != State::kReady || entry.readers > 0) {
    return false;
  }
  entry.state = State::kLeaving;
  leaving_.splice(leaving_.end(), used_, entry.place);
  bytes_ -= entry.bytes;
  ++evicted_;
  end_leaving(exchange, entry);
  return true;
}

/// False: a reader has a lease of it.
bool Store::end_leaving(shmemx_exchange_t* exchange, Entry& entry) {
  const shmemx_exchange_key_t key{.data = entry.key.data(), .bytes = entry.key.size()};
  const int result = shmemx_exchange_withdraw(exchange, &key, 1, 0);
  if (result != 0 && result != -ENOENT) {
    return false;
  }
  remove(entry);
  return true;
}

void Store::retry_leaving(shmemx_exchange_t* exchange) {
  for (auto next = leaving_.begin(); next != leaving_.end();) {
    end_leaving(exchange, **next++);
  }
}

/// The entry ends, unless a thread waits for it.
void Store::remove(Entry& entry) {
  if (entry.state == State::kLeaving) {
    leaving_.erase(entry.place);
  } else {
    used_.erase(entry.place);
    bytes_ -= entry.bytes;
  }
  entry.state = State::kOver;
  room_.give(std::move(entry.part));
  entries_.erase(entries_.find(entry.key));
}

py::tuple Store::stats() {
  exchange_->require_process();
  const std::lock_guard lock(mutex_);
  return py::make_tuple(used_.size(), bytes_, capacity_, stored_, evicted_, local_, remote_, missed_);
}

void bind_store(py::module_& module) {
  py::class_<Store, std::shared_ptr<Store>>(module, "Store")
      .def(py::init<std::shared_ptr<Exchange>, std::uint32_t, std::uintptr_t, std::uint64_t, std::size_t>())
      .def("put", &Store::put)
      .def("get", &Store::get)
      .def("note_others", &Store::note_others)
      .def("holds", &Store::holds)
      .def("storing", &Store::storing)
      .def("contains", &Store::contains)
      .def("touch", &Store::touch)
      .def("discard", &Store::discard)
      .def("clear", &Store::clear)
      .def("stats", &Store::stats);
}

}  // namespace shmem_kv
