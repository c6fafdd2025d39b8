// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/registered_memory.hpp"

#include <algorithm>
#include <functional>

namespace shmem {
namespace {

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  const std::less<> before;
  return before(a.data(), b.data() + b.size()) && before(b.data(), a.data() + a.size());
}

}  // namespace

std::optional<RegisteredMemory::Found> RegisteredMemory::search(const void* mine) const {
  const auto address = reinterpret_cast<std::uintptr_t>(mine);
  // Acquire: as Version asks for. They pair with write_lines().
  return version_.read([&]() -> std::optional<Found> {
    std::size_t low = 0;  // lines before this one begin at the address or before it
    for (std::size_t high = count_.load(std::memory_order_acquire); low < high;) {
      const std::size_t middle = low + (high - low) / 2;
      const bool is_after = table_->lines[middle].begin.load(std::memory_order_acquire) > address;
      (is_after ? high : low) = is_after ? middle : middle + 1;
    }
    if (low == 0) {
      return std::nullopt;
    }
    const Line& line = table_->lines[low - 1];
    const std::size_t offset = address - line.begin.load(std::memory_order_acquire);
    const std::size_t size = line.size.load(std::memory_order_acquire);
    return offset < size ? std::optional(Found{line.slot.load(std::memory_order_acquire), offset, size - offset})
                         : std::nullopt;
  });
}

MemoryRange RegisteredMemory::place_in(const Found& found, int pe) const {
  const Registration::Copy& copy = table_->slots[found.slot]->copies[static_cast<std::size_t>(pe)];
  return copy.mapped != nullptr ? MemoryRange{copy.mapped + found.offset, found.room} : MemoryRange{};
}

std::optional<std::size_t> RegisteredMemory::slot_of(const void* begin) const {
  const auto found = find(begin);
  return found && found->offset == 0 ? std::optional(found->slot) : std::nullopt;
}

bool RegisteredMemory::overlaps(std::span<const std::byte> memory) const {
  const auto has_some = [&](const std::unique_ptr<Registration>& registration) {
    return registration != nullptr &&
           (overlap(registration->mine, memory) ||
            std::any_of(registration->windows.begin(), registration->windows.end(),
                        [&](const base::Mapping& window) { return overlap(window.bytes(), memory); }));
  };
  return table_ != nullptr && std::any_of(table_->slots.begin(), table_->slots.end(), has_some);
}

void RegisteredMemory::add(std::size_t slot, std::unique_ptr<Registration> registration) {
  if (table_ == nullptr) {
    table_ = std::make_unique<Table>();
  }
  table_->slots[slot] = std::move(registration);
  write_lines();
}

void RegisteredMemory::remove(std::size_t slot) {
  const std::unique_ptr<Registration> removed = std::move(table_->slots[slot]);
  write_lines();
}

void RegisteredMemory::write_lines() {
  std::vector<std::size_t> order;
  for (std::size_t slot = 0; slot < table_->slots.size(); ++slot) {
    if (table_->slots[slot] != nullptr) {
      order.push_back(slot);
    }
  }
  std::sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
    return std::less<>()(table_->slots[a]->mine.data(), table_->slots[b]->mine.data());
  });
  // Release: as Version asks for, and a reader of a new value finds the slot that it names.
  constexpr auto kOrder = std::memory_order_release;
  version_.write([&] {
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Registration& registration = *table_->slots[order[i]];
      table_->lines[i].begin.store(reinterpret_cast<std::uintptr_t>(registration.mine.data()), kOrder);
      table_->lines[i].size.store(registration.mine.size(), kOrder);
      table_->lines[i].slot.store(order[i], kOrder);
    }
    count_.store(order.size(), kOrder);
  });
}

}  // namespace shmem
