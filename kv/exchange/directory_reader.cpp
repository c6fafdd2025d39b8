// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/directory_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/memfd.hpp"
#include "kv/exchange/memory.hpp"

namespace shmem::exchange {
namespace {

/// An entry's place, and the size of its key, each word read once. Acquire: the look at the epoch that follows is not
/// earlier; it pairs with the release stores of fill() in directory_writer.cpp.
struct Fields {
  explicit Fields(const Entry& entry)
      : region_and_key_bytes(entry.region_and_key_bytes.load(std::memory_order_acquire)),
        offset(entry.offset.load(std::memory_order_acquire)),
        bytes(entry.bytes.load(std::memory_order_acquire)),
        layout(entry.layout.load(std::memory_order_acquire)) {}

  [[nodiscard]] BlockPlace place() const {
    return {static_cast<std::uint32_t>(region_and_key_bytes >> 32), offset, bytes, layout};
  }
  [[nodiscard]] std::size_t key_bytes() const { return static_cast<std::uint32_t>(region_and_key_bytes); }
  [[nodiscard]] bool make_sense() const {
    return key_bytes() >= 1 && key_bytes() <= kMostKeyBytes && bytes >= 1 && offset + bytes > offset;
  }

  std::uint64_t region_and_key_bytes, offset, bytes, layout;
};

}  // namespace

Result<DirectoryReader> DirectoryReader::open(int file, std::uint32_t slots) {
  if (slots < 1 || slots > kMostSlots) {
    return fail(std::errc::bad_message, fmt::format("a directory of {} slots", slots));
  }
  const std::size_t size = directory_size(slots);
  if (auto sealed = check_shared(file, size); !sealed) {
    return sealed.error();
  }
  if (!base::keeps_pages(file)) {
    return fail(std::errc::bad_message, "a directory that is not sealed");
  }
  auto mapped = base::Mapping::read_only(file, size);
  if (!mapped) {
    return mapped.error();
  }
  DirectoryReader reader(mapped->data(), slots);
  reader.mapping_ = *std::move(mapped);
  return reader;
}

DirectoryReader::DirectoryReader(const std::byte* memory, std::uint32_t slots)
    : memory_(memory),
      slots_(slots),
      words_(index_words(slots)),
      index_(reinterpret_cast<const std::atomic<std::uint64_t>*>(memory + kIndexOffset)),
      entries_(reinterpret_cast<const Entry*>(memory + entries_offset(slots))) {}

bool DirectoryReader::has_key(const Entry& entry, const Key& key) const {
  for (std::size_t i = 0; i < key.used_words(); ++i) {
    // Acquire: as in Fields.
    if (entry.key[i].load(std::memory_order_acquire) != key.word(i)) {
      return false;
    }
  }
  return true;
}

DirectoryReader::Outcome DirectoryReader::find(const Key& key, std::uint64_t layout, Found& found) const {
  Outcome outcome = Outcome::kMissing;
  for (std::size_t i = 0; i < kWindow; ++i) {
    const std::uint64_t at = word(key.hash() + i);
    if (at == kEmpty) {
      break;
    }
    if (at == kRemoved || !has_tag(at, key.hash())) {
      continue;
    }
    const std::uint32_t slot = static_cast<std::uint32_t>(at) - kFirstSlot;
    if (slot >= slots_) {
      outcome = Outcome::kCorrupt;
      continue;
    }
    const Entry& there = entry(slot);
    // Acquire: pairs with publish().
    const std::uint64_t epoch = there.epoch.load(std::memory_order_acquire);
    const Fields fields(there);
    if (!is_valid(epoch) || fields.key_bytes() != key.bytes() || !has_key(there, key) || !still(slot, epoch)) {
      continue;
    }
    if (!fields.make_sense()) {
      outcome = Outcome::kCorrupt;
    } else if (layout != 0 && fields.layout != layout) {
      outcome = Outcome::kOtherLayout;
    } else {
      found = {slot, epoch, fields.place()};
      return Outcome::kFound;
    }
  }
  return outcome;
}

std::errc DirectoryReader::read(std::uint32_t slot, std::uint64_t epoch, BlockPlace& place) const {
  if (slot >= slots_ || !is_valid(epoch)) {
    return std::errc::invalid_argument;
  }
  // Acquire: pairs with publish(), also for the bytes of the block.
  const bool valid = entry(slot).epoch.load(std::memory_order_acquire) == epoch;
  const Fields fields(entry(slot));
  if (!valid || !still(slot, epoch)) {
    return static_cast<std::errc>(ESTALE);
  }
  place = fields.place();
  return fields.make_sense() ? std::errc{} : std::errc::bad_message;
}

bool DirectoryReader::next(std::uint32_t slot, Found& found, Key& key) const {
  for (; slot < slots_; ++slot) {
    const Entry& there = entry(slot);
    const std::uint64_t epoch = there.epoch.load(std::memory_order_acquire);
    if (epoch == 0) {
      return false;  // slots are used in their order: no later one has been
    }
    const Fields fields(there);
    std::array<std::uint64_t, kKeyWords> words{};
    std::transform(there.key.begin(), there.key.end(), words.begin(),
                   [](const auto& word) { return word.load(std::memory_order_acquire); });
    if (!is_valid(epoch) || !still(slot, epoch) || !fields.make_sense()) {
      continue;
    }
    key = *Key::make(words.data(), fields.key_bytes());
    found = {slot, epoch, fields.place()};
    return true;
  }
  return false;
}

}  // namespace shmem::exchange
