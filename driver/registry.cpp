// SPDX-License-Identifier: Apache-2.0
#include "driver/registry.hpp"

#include <cstdlib>
#include <utility>

#include "driver/discovery.hpp"
#include "driver/pci_config.hpp"

namespace gba {

Result<std::shared_ptr<Device>> Registry::open(const std::string& key, const Opener& opener) {
  std::unique_lock lock(mutex_);
  for (auto entry = devices_.find(key); entry != devices_.end(); entry = devices_.find(key)) {
    auto device = entry->second.reference.lock();
    if (device != nullptr && !device->backend().check_lost()) return device;
    if (device != nullptr) break;
    closed_.wait(lock);
  }
  auto opened = opener();
  if (!opened) return tl::make_unexpected(opened.error());
  const std::uint64_t id = ++last_id_;
  std::shared_ptr<Device> shared(opened->release(), [this, key, id](Device* device) {
    // Closed first: whoever waits for it opens it again at once.
    std::unique_ptr<Device>(device).reset();
    forget(key, id);
  });
  devices_[key] = {.id = id, .reference = shared};
  return shared;
}

void Registry::forget(const std::string& key, std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto entry = devices_.find(key);
  if (entry != devices_.end() && entry->second.id == id) devices_.erase(entry);
  closed_.notify_all();
}

namespace {

Result<std::unique_ptr<Device>> open_new(const Location& location, FlagPlace flags, bool even_fatal) {
  const auto expected = expected_pci_ids(std::getenv("GBA_PCI_ID"));
  if (!expected) return tl::make_unexpected(expected.error());
  auto backend = open_backend(location);
  if (!backend) return tl::make_unexpected(backend.error());
  return Device::open(*std::move(backend), *expected, flags, even_fatal);
}

}  // namespace

Result<std::shared_ptr<Device>> open_device(const char* path, FlagPlace flags, bool even_fatal) {
  const auto location = find_device(path);
  if (!location) return tl::make_unexpected(location.error());
  // The one piece of state of the process: a device may be closed as late as from a static destructor.
  static auto& registry = *new Registry;  // NOLINT(cppcoreguidelines-owning-memory)
  return registry.open(location->key, [&] { return open_new(*location, flags, even_fatal); });
}

}  // namespace gba
