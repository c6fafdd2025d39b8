// SPDX-License-Identifier: Apache-2.0
// Directories of exchanges: what a reader finds of what the owner publishes, and what it makes of arbitrary bytes.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <string>

#include "kv/exchange/directory_reader.hpp"
#include "kv/exchange/directory_writer.hpp"
#include "tests/support/failing_new.hpp"

namespace {

/// So many allocations of this thread succeed, then one fails; below 0: all succeed.
thread_local int until_failure = -1;

}  // namespace

bool test_support::must_fail() {
  return until_failure >= 0 && until_failure-- == 0;
}

namespace {

using shmem::exchange::BlockPlace;
using shmem::exchange::DirectoryReader;
using shmem::exchange::DirectoryWriter;
using shmem::exchange::Entry;
using shmem::exchange::Found;
using shmem::exchange::Key;
using Outcome = DirectoryReader::Outcome;

constexpr auto kStaleEntry = static_cast<std::errc>(ESTALE);

Key key_from(const std::string& text) {
  return *Key::make(text.data(), text.size());
}

struct Pair {
  explicit Pair(std::uint32_t slots)
      : writer(*DirectoryWriter::create(slots)), reader(*DirectoryReader::open(writer.file(), slots)) {}
  DirectoryWriter writer;
  DirectoryReader reader;
};

TEST(ExchangeKey, HasOneTo128Bytes) {
  const std::string bytes(129, 'x');
  EXPECT_FALSE(Key::make(bytes.data(), 0));
  EXPECT_FALSE(Key::make(nullptr, 1));
  EXPECT_FALSE(Key::make(bytes.data(), 129));
  EXPECT_TRUE(Key::make(bytes.data(), 1));
  EXPECT_EQ(Key::make(bytes.data(), 128)->bytes(), 128U);
}

TEST(ExchangeKey, DiffersFromOneThatEndsInZeros) {
  const char bytes[3] = {'a', 0, 0};
  EXPECT_NE(Key::make(bytes, 1)->hash(), Key::make(bytes, 2)->hash());
}

TEST(ExchangeDirectory, IsReadAsItWasWritten) {
  Pair pair(4);
  EXPECT_EQ(pair.writer.publish(key_from("one"), {7, 4096, 100, 5}), std::errc{});
  Found found;
  ASSERT_EQ(pair.reader.find(key_from("one"), 0, found), Outcome::kFound);
  EXPECT_EQ(found.place.region, 7U);
  EXPECT_EQ(found.place.offset, 4096U);
  EXPECT_EQ(found.place.bytes, 100U);
  EXPECT_EQ(found.place.layout, 5U);
  EXPECT_EQ(pair.reader.find(key_from("one"), 5, found), Outcome::kFound);
  EXPECT_EQ(pair.reader.find(key_from("one"), 6, found), Outcome::kOtherLayout);
  EXPECT_EQ(pair.reader.find(key_from("two"), 0, found), Outcome::kMissing);
  EXPECT_EQ(pair.reader.blocks(), 1U);
  EXPECT_EQ(pair.reader.bytes(), 100U);
}

TEST(ExchangeDirectory, FindsNoKeyThatOnlyBeginsAlike) {
  Pair pair(4);
  EXPECT_EQ(pair.writer.publish(key_from("12345678"), {1, 0, 1, 0}), std::errc{});
  Found found;
  EXPECT_EQ(pair.reader.find(key_from("123456789"), 0, found), Outcome::kMissing);
  EXPECT_EQ(pair.reader.find(key_from("1234567"), 0, found), Outcome::kMissing);
}

TEST(ExchangeDirectory, RefusesWhatDoesNotFit) {
  Pair pair(2);
  EXPECT_EQ(pair.writer.publish(key_from("a"), {1, 0, 1, 0}), std::errc{});
  EXPECT_EQ(pair.writer.publish(key_from("a"), {1, 0, 1, 0}), std::errc::file_exists);
  EXPECT_EQ(pair.writer.publish(key_from("b"), {1, 0, 1, 0}), std::errc{});
  EXPECT_EQ(pair.writer.publish(key_from("c"), {1, 0, 1, 0}), std::errc::no_space_on_device);
  EXPECT_FALSE(pair.writer.withdraw(key_from("c")));
}

/// An entry is published and counted, or neither.
TEST(ExchangeDirectory, PublishesNothingForWhichThereIsNoMemory) {
  bool fails = true;
  for (int number = 0; fails; ++number) {
    SCOPED_TRACE(number);
    Pair pair(4);
    try {
      until_failure = number;
      EXPECT_EQ(pair.writer.publish(key_from("a"), {7, 0, 8, 0}), std::errc{});
      fails = until_failure < 0;
    } catch (const std::bad_alloc&) {
    }
    until_failure = -1;
    Found found;
    EXPECT_EQ(pair.reader.find(key_from("a"), 0, found), fails ? Outcome::kMissing : Outcome::kFound);
    EXPECT_EQ(pair.writer.uses(7), !fails);
    EXPECT_EQ(pair.writer.blocks(), fails ? 0U : 1U);
    EXPECT_EQ(pair.writer.publish(key_from("b"), {7, 0, 8, 0}), std::errc{});
    const auto withdrawn = pair.writer.withdraw(key_from("b"));
    ASSERT_TRUE(withdrawn);
    pair.writer.remove(*withdrawn);
    EXPECT_EQ(pair.writer.uses(7), !fails) << "only the other one is left";
  }
}

TEST(ExchangeDirectory, AWithdrawnEntryIsStaleAlsoWhenItsSlotIsUsedAgain) {
  Pair pair(1);
  ASSERT_EQ(pair.writer.publish(key_from("a"), {1, 0, 8, 0}), std::errc{});
  Found found;
  ASSERT_EQ(pair.reader.find(key_from("a"), 0, found), Outcome::kFound);
  BlockPlace place;
  EXPECT_EQ(pair.reader.read(found.slot, found.epoch, place), std::errc{});

  const auto withdrawn = pair.writer.withdraw(key_from("a"));
  ASSERT_TRUE(withdrawn && pair.writer.is_withdrawn(*withdrawn));
  Found none;
  EXPECT_EQ(pair.reader.find(key_from("a"), 0, none), Outcome::kMissing);
  EXPECT_EQ(pair.reader.read(found.slot, found.epoch, place), kStaleEntry);
  EXPECT_EQ(pair.writer.publish(key_from("a"), {1, 0, 8, 0}), std::errc::device_or_resource_busy) << "not removed yet";
  EXPECT_TRUE(pair.writer.uses(1));
  pair.writer.remove(*withdrawn);
  EXPECT_FALSE(pair.writer.uses(1));
  EXPECT_FALSE(pair.writer.is_withdrawn(*withdrawn));

  ASSERT_EQ(pair.writer.publish(key_from("a"), {1, 0, 8, 0}), std::errc{});
  EXPECT_FALSE(pair.writer.is_withdrawn(*withdrawn));
  EXPECT_EQ(pair.reader.read(found.slot, found.epoch, place), kStaleEntry);
  Found again;
  ASSERT_EQ(pair.reader.find(key_from("a"), 0, again), Outcome::kFound);
  EXPECT_EQ(again.slot, found.slot);
  EXPECT_GT(again.epoch, found.epoch);
}

TEST(ExchangeDirectory, StaysUsableThroughManyChanges) {
  constexpr std::uint32_t kSlots = 64;
  Pair pair(kSlots);
  std::mt19937 random(1);
  std::vector<bool> there(1000);
  std::size_t count = 0;
  for (int step = 0; step < 100'000; ++step) {
    const std::size_t i = random() % there.size();
    const Key key = key_from("key " + std::to_string(i));
    if (there[i]) {
      const auto withdrawn = pair.writer.withdraw(key);
      ASSERT_TRUE(withdrawn);
      pair.writer.remove(*withdrawn);
      there[i] = false;
      --count;
    } else if (count < kSlots) {
      ASSERT_EQ(pair.writer.publish(key, {1, i, 1, 0}), std::errc{}) << step;
      there[i] = true;
      ++count;
    }
  }
  for (std::size_t i = 0; i < there.size(); ++i) {
    Found found;
    const auto outcome = pair.reader.find(key_from("key " + std::to_string(i)), 0, found);
    ASSERT_EQ(outcome, there[i] ? Outcome::kFound : Outcome::kMissing) << i;
    EXPECT_TRUE(!there[i] || found.place.offset == i);
  }
  EXPECT_EQ(pair.reader.blocks(), count);
}

TEST(ExchangeDirectory, ListsItsEntries) {
  Pair pair(8);
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_EQ(pair.writer.publish(key_from(name), {1, 0, 1, 0}), std::errc{});
  }
  ASSERT_TRUE(pair.writer.withdraw(key_from("b")));
  std::string names;
  Found found;
  Key key;
  for (std::uint32_t slot = 0; pair.reader.next(slot, found, key); slot = found.slot + 1) {
    names.append(static_cast<const char*>(key.data()), key.bytes());
  }
  EXPECT_EQ(names, "ac");
}

TEST(ExchangeDirectory, IsNotReadUnlessItIsSealed) {
  const auto size = static_cast<off_t>(shmem::exchange::directory_size(4));
  const base::UniqueFd open(::memfd_create("directory", MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(open.get(), size), 0);
  EXPECT_FALSE(DirectoryReader::open(open.get(), 4)) << "it can shrink";
  ASSERT_EQ(::fcntl(open.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_FALSE(DirectoryReader::open(open.get(), 4)) << "others can write it";
  ASSERT_EQ(::fcntl(open.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
  EXPECT_TRUE(DirectoryReader::open(open.get(), 4));
  EXPECT_FALSE(DirectoryReader::open(open.get(), 40)) << "it is too small";
  EXPECT_FALSE(DirectoryReader::open(open.get(), 0));
  EXPECT_FALSE(DirectoryReader::open(open.get(), 0xffff'ffff));
}

/// A directory in ordinary memory, of exactly its size, so that a sanitizer sees every access beyond it.
class Corrupt {
 public:
  explicit Corrupt(std::uint32_t slots)
      : slots_(slots),
        size_(shmem::exchange::directory_size(slots)),
        memory_(static_cast<std::byte*>(std::aligned_alloc(4096, size_)), &std::free) {
    std::memset(memory_.get(), 0, size_);
  }
  [[nodiscard]] DirectoryReader reader() const { return {memory_.get(), slots_}; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::byte* data() { return memory_.get(); }
  Entry& entry(std::uint32_t slot) {
    return reinterpret_cast<Entry*>(memory_.get() + shmem::exchange::entries_offset(slots_))[slot];
  }
  std::atomic<std::uint64_t>& word(std::size_t i) {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(memory_.get() + shmem::exchange::kIndexOffset)[i];
  }
  /// An entry of `key` in slot 0, which all words of the index name.
  void put(const Key& key, std::uint32_t slot) {
    Entry& mine = entry(0);
    mine.epoch.store(2);
    mine.region_and_key_bytes.store(std::uint64_t{1} << 32 | key.bytes());
    mine.bytes.store(8);
    for (std::size_t i = 0; i < key.used_words(); ++i) {
      mine.key[i].store(key.word(i));
    }
    for (std::size_t i = 0; i < shmem::exchange::index_words(slots_); ++i) {
      word(i).store(shmem::exchange::index_word(key.hash(), slot));
    }
  }

 private:
  std::uint32_t slots_;
  std::size_t size_;
  std::unique_ptr<std::byte, decltype(&std::free)> memory_;
};

TEST(CorruptDirectory, ASlotBeyondTheEntriesIsNotFollowed) {
  Corrupt corrupt(4);
  const Key key = key_from("a");
  Found found;
  corrupt.put(key, 0);
  ASSERT_EQ(corrupt.reader().find(key, 0, found), Outcome::kFound);
  for (const std::uint32_t slot : {4U, 5U, 0x00ff'ffffU, 0xffff'fff0U, 0xffff'ffffU}) {
    corrupt.put(key, slot);
    EXPECT_NE(corrupt.reader().find(key, 0, found), Outcome::kFound) << slot;
    BlockPlace place;
    EXPECT_EQ(corrupt.reader().read(slot, 2, place), std::errc::invalid_argument) << slot;
  }
}

TEST(CorruptDirectory, SizesThatMakeNoSenseAreRefused) {
  Corrupt corrupt(4);
  const Key key = key_from("a");
  Found found;
  BlockPlace place;
  corrupt.put(key, 0);
  for (const auto& [offset, bytes] :
       {std::pair<std::uint64_t, std::uint64_t>{0, 0}, {UINT64_MAX, 8}, {8, UINT64_MAX}}) {
    corrupt.entry(0).offset.store(offset);
    corrupt.entry(0).bytes.store(bytes);
    EXPECT_EQ(corrupt.reader().find(key, 0, found), Outcome::kCorrupt);
    EXPECT_EQ(corrupt.reader().read(0, 2, place), std::errc::bad_message);
  }
  corrupt.put(key, 0);
  corrupt.entry(0).offset.store(0);
  for (const std::uint64_t bytes : {0U, 129U, 0xffff'ffffU}) {
    corrupt.entry(0).region_and_key_bytes.store(bytes);
    EXPECT_EQ(corrupt.reader().read(0, 2, place), std::errc::bad_message);
    Key listed;
    EXPECT_FALSE(corrupt.reader().next(0, found, listed));
  }
}

TEST(CorruptDirectory, AnyBytesAreReadWithinBounds) {
  Corrupt corrupt(16);
  std::mt19937_64 random(7);
  const Key key = key_from("a");
  for (int round = 0; round < 2'000; ++round) {
    for (std::size_t at = 0; at < corrupt.size(); at += 8) {
      const std::uint64_t word = random() >> random() % 64;
      std::memcpy(corrupt.data() + at, &word, 8);
    }
    // Half of the words lead somewhere.
    for (std::size_t i = 0; i < shmem::exchange::index_words(16); i += 2) {
      corrupt.word(i).store(shmem::exchange::index_word(key.hash(), static_cast<std::uint32_t>(random() % 20)));
    }
    const DirectoryReader reader = corrupt.reader();
    Found found;
    reader.find(key, random() % 2, found);
    Key listed;
    for (std::uint32_t slot = 0; reader.next(slot, found, listed); slot = found.slot + 1) {
      ASSERT_LT(found.slot, 16U);
      ASSERT_LE(listed.bytes(), shmem::exchange::kMostKeyBytes);
    }
  }
}

}  // namespace
