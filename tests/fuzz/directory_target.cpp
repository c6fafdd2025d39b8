// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "kv/exchange/directory_reader.hpp"
#include "tests/fuzz/check.hpp"
#include "tests/fuzz/script.hpp"
#include "tests/fuzz/targets.hpp"

namespace fuzz {
namespace {

using namespace shmem::exchange;  // NOLINT(google-build-using-namespace): what the target is about

constexpr std::uint32_t kFuzzSlots = 8;
constexpr std::size_t kFuzzSize = directory_size(kFuzzSlots);
constexpr std::size_t kFuzzWords = index_words(kFuzzSlots);

Key fuzz_key() {
  const std::string text = "a key of 3 words";
  return *Key::make(text.data(), text.size());
}

/// A directory of exactly its size.
class FuzzDirectory {
 public:
  FuzzDirectory() : memory_(static_cast<std::byte*>(std::aligned_alloc(4096, kFuzzSize)), &std::free) {
    std::memset(memory_.get(), 0, kFuzzSize);
  }
  [[nodiscard]] DirectoryReader reader() const { return {memory_.get(), kFuzzSlots}; }

  /// Steps: 0: u16 place, u64 value; 1: u8 place, u32 slot: a word of the index, for the key; 2: u8 slot, u8 epoch,
  /// u32 region, u8 bytes of the key, u64 offset, u64 bytes, u64 layout: an entry of the key.
  void step(Input& input) {
    switch (input.take<std::uint8_t>() % 3) {
      case 0: {
        const std::size_t place = input.take<std::uint16_t>() % (kFuzzSize / 8);
        word(place).store(input.take<std::uint64_t>());
        break;
      }
      case 1: {
        const std::size_t place = input.take<std::uint8_t>() % kFuzzWords;
        word(kIndexOffset / 8 + place).store(index_word(fuzz_key().hash(), input.take<std::uint32_t>()));
        break;
      }
      default:
        put(input);
    }
  }

 private:
  std::atomic<std::uint64_t>& word(std::size_t i) {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(memory_.get())[i];
  }
  void put(Input& input) {
    Entry& entry =
        reinterpret_cast<Entry*>(memory_.get() + entries_offset(kFuzzSlots))[input.take<std::uint8_t>() % kFuzzSlots];
    entry.epoch.store(input.take<std::uint8_t>());
    const std::uint64_t region = input.take<std::uint32_t>();
    entry.region_and_key_bytes.store(region << 32 | input.take<std::uint8_t>());
    entry.offset.store(input.take<std::uint64_t>());
    entry.bytes.store(input.take<std::uint64_t>());
    entry.layout.store(input.take<std::uint64_t>());
    const Key key = fuzz_key();
    for (std::size_t i = 0; i < key.used_words(); ++i) {
      entry.key[i].store(key.word(i));
    }
  }

  std::unique_ptr<std::byte, decltype(&std::free)> memory_;
};

void check_found(const DirectoryReader& reader, const Found& found) {
  check(found.slot < kFuzzSlots, "a slot is in the directory");
  check(is_valid(found.epoch), "an entry that is found is valid");
  check(found.place.bytes > 0 && found.place.offset + found.place.bytes > found.place.offset, "a size makes sense");
  BlockPlace place;
  check(reader.read(found.slot, found.epoch, place) == std::errc{}, "what was found can be read");
  check(place.offset == found.place.offset && place.bytes == found.place.bytes, "an entry is read as it was found");
}

}  // namespace

void run_directory(std::span<const std::byte> bytes) {
  Input input(bytes);
  FuzzDirectory directory;
  for (int i = 0; i < 64; ++i) {
    directory.step(input);
  }
  const DirectoryReader reader = directory.reader();
  Found found;
  for (const std::uint64_t layout : {0U, 1U}) {
    if (reader.find(fuzz_key(), layout, found) == DirectoryReader::Outcome::kFound) {
      check_found(reader, found);
      check(layout == 0 || found.place.layout == layout, "the layout is the one that was asked for");
    }
  }
  Key key;
  std::uint32_t listed = 0;
  for (std::uint32_t slot = 0; reader.next(slot, found, key); slot = found.slot + 1) {
    check_found(reader, found);
    check(key.bytes() >= 1 && key.bytes() <= kMostKeyBytes, "a key has a size that keys have");
    check(++listed <= kFuzzSlots, "a list ends");
  }
}

}  // namespace fuzz
