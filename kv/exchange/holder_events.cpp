// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/holder_events.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/memfd.hpp"
#include "kv/exchange/memory.hpp"

namespace shmem::exchange {

Result<HolderEvents> HolderEvents::create() {
  HolderEvents events;
  auto file =
      base::create_memfd("shmem-exchange-events", sizeof(EventRing), base::MemfdPages::kUsual, base::MemfdSeals::kOpen);
  if (!file) {
    return file.error();
  }
  auto memory = base::Mapping::share(file->get(), sizeof(EventRing));
  if (!memory) {
    return memory.error();
  }
  if (auto sealed = base::keep_pages(file->get()); !sealed) {
    return sealed.error();
  }
  events.file_ = *std::move(file);
  events.memory_ = *std::move(memory);
  return events;
}

void HolderEvents::add(std::uint32_t kind, const Key& key, std::uint64_t layout, std::uint64_t bytes) {
  const std::uint64_t number = ring().last.load(std::memory_order_relaxed) + 1;
  EventSlot& slot = ring().slots[number % kEvents];
  constexpr auto kOrder = std::memory_order_release;  // as Version asks for
  slot.version.write(2 * number, [&] {
    slot.kind_and_key_bytes.store(std::uint64_t{kind} << 32 | key.bytes(), kOrder);
    slot.layout.store(layout, kOrder);
    slot.bytes.store(bytes, kOrder);
    for (std::size_t i = 0; i < key.used_words(); ++i) {
      slot.key[i].store(key.word(i), kOrder);
    }
  });
  ring().last.store(number, std::memory_order_release);  // pairs with last()
}

Result<HolderEventReader> HolderEventReader::open(int file) {
  if (auto shared = check_shared(file, sizeof(EventRing)); !shared) {
    return shared.error();
  }
  if (!base::keeps_pages(file)) {
    return fail(std::errc::bad_message, "events that are not sealed");
  }
  auto memory = base::Mapping::read_only(file, sizeof(EventRing));
  if (!memory) {
    return memory.error();
  }
  HolderEventReader reader;
  reader.memory_ = *std::move(memory);
  return reader;
}

bool HolderEventReader::read_one(std::uint64_t number, shmemx_exchange_event_t& event) const {
  const EventSlot& slot = ring().slots[number % kEvents];
  static constexpr auto kOrder = std::memory_order_acquire;  // as Version asks for
  return slot.version.read(2 * number, [&] {
    const std::uint64_t kind_and_key_bytes = slot.kind_and_key_bytes.load(kOrder);
    std::array<std::uint64_t, kKeyWords> words{};
    std::transform(slot.key.begin(), slot.key.end(), words.begin(), [](const auto& word) { return word.load(kOrder); });
    event = {};
    event.number = number;
    event.layout = slot.layout.load(kOrder);
    event.bytes = slot.bytes.load(kOrder);
    event.kind = static_cast<std::uint32_t>(kind_and_key_bytes >> 32);
    event.key.bytes = std::min(static_cast<std::uint32_t>(kind_and_key_bytes), std::uint32_t{kMostKeyBytes});
    std::memcpy(event.key.data, words.data(), event.key.bytes);
  });
}

bool HolderEventReader::read(std::uint64_t& after, std::span<shmemx_exchange_event_t> events,
                             std::size_t& count) const {
  count = 0;
  const std::uint64_t end = last();
  if (after > end) {
    return false;  // of another holder
  }
  while (count < events.size() && after < end) {
    if (!read_one(after + 1, events[count])) {
      return false;
    }
    ++after;
    ++count;
  }
  return true;
}

}  // namespace shmem::exchange
