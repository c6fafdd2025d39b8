// SPDX-License-Identifier: Apache-2.0
// Blocks of this member: memory is registered, blocks of it are published and withdrawn.
#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "base/memfd.hpp"
#include "base/size_text.hpp"
#include "kv/exchange/exchange.hpp"
#include "shmem/config/log.hpp"
#include "shmem/memory/memory_limit.hpp"

namespace shmem::exchange {
namespace {

using Clock = std::chrono::steady_clock;

/// Between two looks at the leases of readers.
constexpr std::chrono::microseconds kLook{50};

/// What readers get: through a duplicate they could write the file, shrink and seal it. Where /proc is missing, or does
/// not let this process read the file, they get one. Null: errno says why.
base::UniqueFd open_for_readers(int fd) {
  base::UniqueFd file(::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    file.reset(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  }
  return file;
}

/// Memory is taken as blocks fill it, so that more than there is would be found out hours later.
void warn_of_memory(const std::string& exchange, std::size_t bytes, std::atomic<bool>& has_warned) {
  const MemoryLimit limit = memory_limit();
  if (bytes > limit.bytes && !has_warned.exchange(true, std::memory_order_relaxed)) {
    log(LogLevel::kWarn,
        "shmem: exchange %s: %s for blocks is more than the %s, %s: the kernel will end a process before blocks fill "
        "it; "
        "ask for less",
        exchange.c_str(), base::rounded_size_text(bytes).c_str(), limit.source.c_str(),
        base::rounded_size_text(limit.bytes).c_str());
  }
}

}  // namespace

Result<std::uint32_t> Exchange::register_memory(shmemx_memory_t& memory) {
  const bool make = memory.fd < 0;
  if (make && (memory.address != nullptr || memory.offset != 0 || memory.bytes == 0)) {
    return problem(
        std::errc::invalid_argument,
        "memory without a file descriptor cannot be registered; pass the memfd that it is mapped from, or no "
        "address for new memory of at least 1 byte");
  }
  if (memory.offset < 0) {
    return problem(std::errc::invalid_argument, fmt::format("the offset of memory is {}", memory.offset));
  }
  Region region{.range = {static_cast<std::uint64_t>(memory.offset), memory.bytes}, .made = {}};
  base::UniqueFd file;
  if (make) {
    auto made =
        base::create_memfd("shmem-exchange-blocks", memory.bytes, base::MemfdPages::kUsual, base::MemfdSeals::kOpen);
    auto mapped = made ? base::Mapping::share(made->get(), memory.bytes) : Result<base::Mapping>(made.error());
    // Readers need not trust each other: only this process can write it.
    const auto sealed = mapped ? base::keep_pages(made->get()) : Result<void>(mapped.error());
    if (!sealed) {
      return problem(sealed.error().code, sealed.error().text);
    }
    file = *std::move(made);
    region.made = *std::move(mapped);
  } else {
    if (auto fits = check_memory(memory.fd, region.range); !fits) {
      return problem(fits.error().code, fits.error().text);
    }
    file = open_for_readers(memory.fd);
    if (!file) {
      return problem(static_cast<std::errc>(errno), fmt::format("cannot duplicate file descriptor {}", memory.fd));
    }
  }
  warn_of_memory(name_, memory.bytes, has_warned_of_memory_);
  const std::lock_guard lock(mutex_);
  if (regions_.size() == kMostRegions) {
    return problem(std::errc::no_space_on_device,
                   fmt::format("{} regions are registered, the most there may be; unregister one", kMostRegions));
  }
  if (last_region_ == UINT32_MAX) {
    return problem(
        std::errc::no_space_on_device,
        fmt::format("{} regions have been registered, and numbers are not used again; open the exchange again",
                    last_region_));
  }
  const std::uint32_t number = ++last_region_;
  const FileRange range = region.range;
  void* const address = make ? region.made.data() : memory.address;
  if (remote() != nullptr) {
    base::UniqueFd copy(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
    if (!copy) {
      return problem(static_cast<std::errc>(errno), "cannot duplicate the file of a region");
    }
    if (auto added = remote()->readers().add_region(number, std::move(copy), range); !added) {
      return problem(added.error().code, added.error().text);
    }
  }
  try {
    members_->readers().add_region(number, std::move(file), range);
    regions_.emplace(number, std::move(region));
  } catch (const std::bad_alloc&) {
    members_->readers().remove_region(number);
    if (remote() != nullptr) {
      remote()->readers().remove_region(number);
    }
    throw;
  }
  memory.address = address;
  return number;
}

Result<void> Exchange::unregister_memory(std::uint32_t region) {
  const std::lock_guard lock(mutex_);
  if (!regions_.contains(region)) {
    return problem(std::errc::no_such_file_or_directory, fmt::format("there is no region {}", region));
  }
  if (directory_.uses(region)) {
    return problem(std::errc::device_or_resource_busy,
                   fmt::format("blocks of region {} are published; withdraw them first", region));
  }
  members_->readers().remove_region(region);
  if (remote() != nullptr) {
    remote()->readers().remove_region(region);
  }
  regions_.erase(region);
  return {};
}

/// Without memory only this entry fails: the caller must know of each whether it is published.
std::errc Exchange::publish_one(const shmemx_exchange_entry_t& entry) try {
  const auto key = Key::make(entry.key.data, entry.key.bytes);
  const auto region = regions_.find(entry.region);
  if (region == regions_.end()) {
    return std::errc::no_such_file_or_directory;
  }
  const std::uint64_t room = region->second.range.bytes;
  if (!key || entry.bytes == 0 || entry.offset > room || entry.bytes > room - entry.offset) {
    return std::errc::invalid_argument;
  }
  return directory_.publish(*key, {entry.region, entry.offset, entry.bytes, entry.layout});
} catch (const std::bad_alloc&) {
  return std::errc::not_enough_memory;
}

int Exchange::publish(std::span<shmemx_exchange_entry_t> entries) {
  int published = 0;
  const std::lock_guard lock(mutex_);
  for (auto& entry : entries) {
    entry.status = settings_.holds ? -EPERM : -static_cast<std::int32_t>(publish_one(entry));
    published += entry.status == 0 ? 1 : 0;
  }
  add(counters_.published, static_cast<std::uint64_t>(published));
  return published;
}

bool Exchange::is_leased(std::uint32_t slot, std::uint32_t now) const {
  return members_->readers().is_leased(slot, now) || (remote() != nullptr && remote()->readers().is_leased(slot, now));
}

bool Exchange::remove_withdrawn(const DirectoryWriter::Withdrawn& withdrawn) {
  if (!directory_.is_withdrawn(withdrawn)) {
    return true;
  }
  const Clock::time_point now = Clock::now();
  // Whatever the reader says: no lease that was taken before lasts longer.
  const bool is_over = now - withdrawn.since >= std::chrono::milliseconds(settings_.lease_ms);
  if (!is_over && is_leased(withdrawn.slot, lease_clock(now))) {
    return false;
  }
  // Its reader had a lease when the block was withdrawn, and has not released it since.
  const std::uint32_t began = lease_clock(withdrawn.since);
  if (began != lease_clock(now) && is_leased(withdrawn.slot, began)) {
    add(counters_.leases_expired);
  }
  directory_.remove(withdrawn);
  add(counters_.withdrawn);
  return true;
}

Result<void> Exchange::withdraw(std::span<const shmemx_exchange_key_t> keys, std::chrono::nanoseconds limit) {
  const Timer timer(times_ ? &times_->withdraw : nullptr);
  if (settings_.holds) {
    return problem(std::errc::operation_not_permitted, "the holder of an exchange withdraws blocks by itself; discard");
  }
  std::vector<Key> named;
  named.reserve(keys.size());
  for (const auto& given : keys) {
    const auto key = Key::make(given.data, given.bytes);
    if (!key) {
      return problem(std::errc::invalid_argument,
                     fmt::format("a key of {} bytes; keys have 1 to {}", given.bytes, kMostKeyBytes));
    }
    named.push_back(*key);
  }
  const auto deadline = Clock::now() + limit;
  // Each block is withdrawn once: another thread may remove it, and publish one with the same key.
  std::vector<DirectoryWriter::Withdrawn> left;
  left.reserve(named.size());
  {
    const std::lock_guard lock(mutex_);
    for (const Key& key : named) {
      if (const auto withdrawn = directory_.withdraw(key)) {
        left.push_back(*withdrawn);
      }
    }
  }
  const std::size_t missing = named.size() - left.size();
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(left, [this](const auto& withdrawn) { return remove_withdrawn(withdrawn); });
    }
    if (left.empty()) {
      break;
    }
    if (Clock::now() >= deadline) {
      return problem(std::errc::device_or_resource_busy,
                     fmt::format("{} of {} leased by readers; withdraw them again before their memory is used",
                                 left.size(), base::count(keys.size(), "block") + (left.size() == 1 ? " is" : " are")));
    }
    std::this_thread::sleep_for(kLook);
  }
  return missing == 0 ? Result<void>()
                      : problem(std::errc::no_such_file_or_directory,
                                fmt::format("{} of {} not published", missing,
                                            base::count(keys.size(), "key") + (missing == 1 ? " is" : " are")));
}

// ---- Blocks that the holder publishes ----

std::errc Exchange::publish_held(const Key& key, const BlockPlace& place, std::uint32_t& slot) try {
  const std::lock_guard lock(mutex_);
  const std::errc error = directory_.publish(key, place, &slot);
  add(counters_.published, error == std::errc{} ? 1 : 0);
  return error;
} catch (const std::bad_alloc&) {
  return std::errc::not_enough_memory;
}

std::optional<std::uint32_t> Exchange::held(const Key& key, std::uint64_t layout) const {
  const std::lock_guard lock(mutex_);
  const auto slot = directory_.find(key, layout);
  return slot && directory_.is_published(*slot) ? slot : std::nullopt;
}

std::optional<std::uint32_t> Exchange::held_in_any_layout(const Key& key) const {
  const std::lock_guard lock(mutex_);
  Found found;
  const DirectoryReader reader(directory_.memory(), directory_.slots());
  return reader.find(key, 0, found) == DirectoryReader::Outcome::kFound ? std::optional(found.slot) : std::nullopt;
}

Key Exchange::held_key(std::uint32_t slot) const {
  const std::lock_guard lock(mutex_);
  return directory_.key_at(slot);
}

DirectoryWriter::Withdrawn Exchange::withdraw_held(std::uint32_t slot) {
  const std::lock_guard lock(mutex_);
  return directory_.withdraw_at(slot);
}

bool Exchange::remove_held(const DirectoryWriter::Withdrawn& withdrawn) {
  const std::lock_guard lock(mutex_);
  return remove_withdrawn(withdrawn);
}

bool Exchange::is_read(std::uint32_t slot) const {
  return is_leased(slot, lease_clock());
}

}  // namespace shmem::exchange
