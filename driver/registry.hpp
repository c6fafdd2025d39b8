// SPDX-License-Identifier: Apache-2.0
// The devices that this process has open: one port has one opener, so opening a device again gives the same one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "driver/device.hpp"
#include "driver/result.hpp"

namespace gba {

/// Thread-safe. Outlives the devices that came from it.
class Registry {
 public:
  using Opener = std::function<Result<std::unique_ptr<Device>>()>;

  /// The open device with this key, or a new one from `opener`. Waits for a device that is
  /// being closed: it must be free before it can be opened again. A lost device is not returned again.
  Result<std::shared_ptr<Device>> open(const std::string& key, const Opener& opener);

 private:
  struct Entry {
    std::uint64_t id = 0;  // tells a lost device from its successor
    std::weak_ptr<Device> reference;
  };

  struct Holder;

  void forget(const std::string& key, std::uint64_t id);

  std::mutex mutex_;  // guards what follows; held while a device is opened, so that two threads do not open it twice
  std::condition_variable closed_;
  std::map<std::string, Entry> devices_;
  std::uint64_t last_id_ = 0;
};

/// gba_open: the device that `path` means. `flags`: where releases land, if it is not open already; the first opener
/// decides. `even_fatal`: also if it reports FATAL.
Result<std::shared_ptr<Device>> open_device(const char* path, FlagPlace flags, bool even_fatal = false);

}  // namespace gba
