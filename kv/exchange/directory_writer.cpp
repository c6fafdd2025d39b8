// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/directory_writer.hpp"

#include <algorithm>

#include "base/memfd.hpp"
#include "shmem/memory/ordering.hpp"

namespace shmem::exchange {
namespace {

bool has_key(const Entry& entry, const Key& key) {
  // Relaxed: only this process writes entries, one thread at a time.
  constexpr auto kOrder = std::memory_order_relaxed;
  if (entry.hash.load(kOrder) != key.hash() ||
      static_cast<std::uint32_t>(entry.region_and_key_bytes.load(kOrder)) != key.bytes()) {
    return false;
  }
  for (std::size_t i = 0; i < key.used_words(); ++i) {
    if (entry.key[i].load(kOrder) != key.word(i)) {
      return false;
    }
  }
  return true;
}

/// Release: a reader that sees one of these words also sees, in its second look, that the entry is not valid.
void fill(Entry& entry, const Key& key, const BlockPlace& place) {
  constexpr auto kOrder = std::memory_order_release;
  entry.hash.store(key.hash(), kOrder);
  entry.region_and_key_bytes.store(std::uint64_t{place.region} << 32 | key.bytes(), kOrder);
  entry.offset.store(place.offset, kOrder);
  entry.bytes.store(place.bytes, kOrder);
  entry.layout.store(place.layout, kOrder);
  for (std::size_t i = 0; i < key.used_words(); ++i) {
    entry.key[i].store(key.word(i), kOrder);
  }
}

}  // namespace

Result<DirectoryWriter> DirectoryWriter::create(std::uint32_t slots, Identity identity) {
  const std::size_t size = directory_size(slots);
  auto file = base::create_memfd("shmem-exchange-directory", size, base::MemfdPages::kUsual, base::MemfdSeals::kOpen);
  if (!file) {
    return file.error();
  }
  auto memory = base::Mapping::share(file->get(), size);
  if (!memory) {
    return memory.error();
  }
  // Others map it for reading only: none can change what the rest reads.
  if (auto sealed = base::keep_pages(file->get()); !sealed) {
    return sealed.error();
  }
  return DirectoryWriter(*std::move(file), *std::move(memory), slots, identity);
}

DirectoryWriter::DirectoryWriter(base::UniqueFd file, base::Mapping memory, std::uint32_t slots, Identity identity)
    : file_(std::move(file)),
      memory_(std::move(memory)),
      slots_(slots),
      identity_(identity),
      words_(index_words(slots)) {}

std::optional<std::uint32_t> DirectoryWriter::find(const Key& key, std::uint64_t layout) const {
  for (std::size_t i = 0; i < kWindow; ++i) {
    const std::uint64_t found = word(key.hash() + i).load(std::memory_order_relaxed);
    if (found == kEmpty) {
      return std::nullopt;
    }
    const std::uint32_t slot = static_cast<std::uint32_t>(found) - kFirstSlot;
    if (found != kRemoved && has_tag(found, key.hash()) && has_key(entry(slot), key) &&
        (identity_ == Identity::kKey || entry(slot).layout.load(std::memory_order_relaxed) == layout)) {
      return slot;
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> DirectoryWriter::free_word(const Key& key) const {
  for (std::size_t i = 0; i < kWindow; ++i) {
    if (word(key.hash() + i).load(std::memory_order_relaxed) <= kRemoved) {
      return (key.hash() + i) & (words_ - 1);
    }
  }
  return std::nullopt;
}

std::optional<std::uint32_t> DirectoryWriter::take_slot() {
  if (!free_.empty()) {
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  if (used_.size() == slots_) {
    return std::nullopt;
  }
  if (used_.size() == used_.capacity()) {
    const std::size_t more = std::max<std::size_t>(64, 2 * used_.size());
    free_.reserve(more);  // for as many as are used: remove() allocates nothing
    used_.reserve(more);
  }
  used_.emplace_back();
  return static_cast<std::uint32_t>(used_.size() - 1);
}

Key DirectoryWriter::key_at(std::uint32_t slot) const {
  constexpr auto kOrder = std::memory_order_relaxed;
  std::array<std::uint64_t, kKeyWords> words{};
  const auto& from = entry(slot).key;
  std::transform(from.begin(), from.end(), words.begin(), [](const auto& word) { return word.load(kOrder); });
  return *Key::make(words.data(), static_cast<std::uint32_t>(entry(slot).region_and_key_bytes.load(kOrder)));
}

std::errc DirectoryWriter::publish(const Key& key, const BlockPlace& place, std::uint32_t* at) {
  if (const auto there = find(key, place.layout)) {
    return is_published(*there) ? std::errc::file_exists : std::errc::device_or_resource_busy;
  }
  // What allocates comes first: an entry is published with all that belongs to it, or not at all.
  std::uint64_t& uses = uses_[place.region];
  const auto index = free_word(key);
  const auto slot = index ? take_slot() : std::nullopt;
  if (!slot) {
    return std::errc::no_space_on_device;
  }
  Entry& mine = entry(*slot);
  const std::uint64_t epoch = mine.epoch.load(std::memory_order_relaxed) | 1U;  // odd, or 0 if it was never used
  mine.epoch.store(epoch, std::memory_order_relaxed);
  fill(mine, key, place);
  // Release: pairs with the reader's acquire load, after which it sees the entry and the bytes of the block.
  mine.epoch.store(epoch + 1, std::memory_order_release);
  // Release: a reader that comes from the index finds the entry valid.
  word(*index).store(index_word(key.hash(), *slot), std::memory_order_release);
  used_[*slot].index = *index;
  ++uses;
  count(1, place.bytes);
  if (at != nullptr) {
    *at = *slot;
  }
  return {};
}

std::optional<DirectoryWriter::Withdrawn> DirectoryWriter::withdraw(const Key& key, std::uint64_t layout) {
  const auto slot = find(key, layout);
  return slot ? std::optional(withdraw_at(*slot)) : std::nullopt;
}

DirectoryWriter::Withdrawn DirectoryWriter::withdraw_at(std::uint32_t slot) {
  Entry& mine = entry(slot);
  const std::uint64_t epoch = mine.epoch.load(std::memory_order_relaxed);
  if (is_valid(epoch)) {
    mine.epoch.store(epoch + 1, std::memory_order_relaxed);
    // The epoch is visible before this member reads leases, or changes the block. A reader writes its lease before it
    // reads the epoch, with the same fence between: one of the two sees the other. And a reader that copies changed
    // bytes sees the changed epoch afterwards (after_reads()).
    quiet();
    used_[slot].withdrawn = std::chrono::steady_clock::now();
    used_[slot].is_withdrawn = true;
    count(-1, std::uint64_t{0} - mine.bytes.load(std::memory_order_relaxed));
  }
  return {slot, mine.epoch.load(std::memory_order_relaxed), used_[slot].withdrawn};
}

void DirectoryWriter::remove(const Withdrawn& withdrawn) {
  Slot& slot = used_[withdrawn.slot];
  slot.is_withdrawn = false;
  clear_word(slot.index);
  const auto region =
      static_cast<std::uint32_t>(entry(withdrawn.slot).region_and_key_bytes.load(std::memory_order_relaxed) >> 32);
  if (--uses_[region] == 0) {
    uses_.erase(region);
  }
  free_.push_back(withdrawn.slot);
}

/// A word before an empty one may be empty, too: searches then end there.
void DirectoryWriter::clear_word(std::size_t at) {
  // Relaxed everywhere: a reader that sees an old word finds an entry that is not valid, or has another key.
  word(at).store(kRemoved, std::memory_order_relaxed);
  if (word(at + 1).load(std::memory_order_relaxed) != kEmpty) {
    return;
  }
  for (std::size_t i = at; word(i).load(std::memory_order_relaxed) == kRemoved; --i) {
    word(i).store(kEmpty, std::memory_order_relaxed);
  }
}

void DirectoryWriter::count(std::int64_t blocks, std::uint64_t bytes) {
  blocks_ += static_cast<std::uint64_t>(blocks);
  bytes_ += bytes;
  auto& header = *reinterpret_cast<DirectoryHeader*>(memory_.data());
  header.blocks.store(blocks_, std::memory_order_relaxed);
  header.bytes.store(bytes_, std::memory_order_relaxed);
}

}  // namespace shmem::exchange
