// SPDX-License-Identifier: Apache-2.0
#include "driver/registry.hpp"

#include <atomic>
#include <cstdlib>
#include <utility>

#include "base/forks.hpp"
#include "driver/discovery.hpp"
#include "driver/pci.hpp"

namespace gba {

/// Closes the device when its last user lets go of it.
struct Registry::Holder {
  Holder(Registry& of, std::string name) : registry(of), key(std::move(name)) {}
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() {
    if (device == nullptr) {
      return;
    }
    // In a forked child this registry belongs to the parent, and another thread may have held it.
    const bool ours = device->backend().loss() != Loss::kForked;
    // Closed first: a waiting thread opens it again at once.
    device.reset();
    if (ours) {
      registry.forget(key, id);
    }
  }

  Registry& registry;
  const std::string key;
  std::uint64_t id = 0;
  std::unique_ptr<Device> device;
};

Result<std::shared_ptr<Device>> Registry::open(const std::string& key, const Opener& opener) {
  // Both go after the lock: the holder of the last reference to a device takes the lock itself.
  const auto holder = std::make_shared<Holder>(*this, key);
  std::shared_ptr<Device> known;
  std::unique_lock lock(mutex_);
  for (auto entry = devices_.find(key); entry != devices_.end(); entry = devices_.find(key)) {
    known = entry->second.reference.lock();
    if (known != nullptr && !known->backend().check_lost()) {
      return known;
    }
    if (known != nullptr) {
      break;
    }
    closed_.wait(lock);
  }
  auto opened = opener();
  if (!opened) {
    return opened.error();
  }
  holder->device = *std::move(opened);
  holder->id = ++last_id_;
  std::shared_ptr<Device> shared(holder, holder->device.get());
  devices_[key] = {.id = holder->id, .reference = shared};
  return shared;
}

void Registry::forget(const std::string& key, std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto entry = devices_.find(key);
  if (entry != devices_.end() && entry->second.id == id) {
    devices_.erase(entry);
  }
  closed_.notify_all();
}

namespace {

Result<std::unique_ptr<Device>> open_new(const Location& location, VfioContexts& contexts, FlagPlace flags,
                                         bool even_fatal) {
  const auto expected = expected_pci_ids(std::getenv("GBA_PCI_ID"));
  if (!expected) {
    return expected.error();
  }
  auto backend = open_backend(location, contexts);
  if (!backend) {
    return backend.error();
  }
  auto device = Device::open(*std::move(backend), *expected, flags, even_fatal);
  if (device) {
    (*device)->serve_status(location.key);
  }
  return device;
}

struct OfProcess {
  unsigned fork;
  Registry registry;
  VfioContexts contexts;  // used by one opener at a time
};

/// The one piece of state of the process, never destroyed: a device may be closed as late as from a static destructor.
/// A forked child has one of its own, because another thread of its parent may have held the parent's.
OfProcess& of_process() {
  static std::atomic<OfProcess*> current{nullptr};
  OfProcess* now = current.load(std::memory_order_acquire);
  while (now == nullptr || now->fork != base::forks()) {
    std::unique_ptr<OfProcess> fresh(new OfProcess{.fork = base::forks(), .registry = {}, .contexts = {}});
    if (current.compare_exchange_strong(now, fresh.get(), std::memory_order_acq_rel)) {
      now = fresh.release();
    }
  }
  return *now;
}

}  // namespace

Result<std::shared_ptr<Device>> open_device(const char* path, FlagPlace flags, bool even_fatal) {
  const auto location = find_device(path);
  if (!location) {
    return location.error();
  }
  OfProcess& process = of_process();
  return process.registry.open(location->key, [&] { return open_new(*location, process.contexts, flags, even_fatal); });
}

}  // namespace gba
