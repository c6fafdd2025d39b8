// SPDX-License-Identifier: Apache-2.0
// The table of registered memory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "shmem/memory/registered_memory.hpp"

namespace shmem {
namespace {

std::array<std::byte, 65536> arena{};

std::span<std::byte> part(std::size_t begin, std::size_t size) {
  return std::span(arena).subspan(begin, size);
}

/// On a node of two PEs; this one is PE 0. `theirs`: where PE 1 has it.
std::unique_ptr<Registration> registration(std::span<std::byte> mine, std::byte* theirs = nullptr) {
  auto made = std::make_unique<Registration>();
  made->mine = mine;
  made->copies.resize(2);
  made->copies[0].mapped = mine.data();
  made->copies[1].mapped = theirs;
  return made;
}

TEST(RegisteredMemory, HasNothingAtFirst) {
  const RegisteredMemory table;
  EXPECT_FALSE(table.find(arena.data()));
  EXPECT_FALSE(table.find(nullptr));
  EXPECT_EQ(table.locate(arena.data(), 1).address, nullptr);
  EXPECT_FALSE(table.overlaps(part(0, 100)));
}

TEST(RegisteredMemory, IsFoundFromItsFirstByteToItsLast) {
  RegisteredMemory table;
  table.add(7, registration(part(100, 50), arena.data() + 10'000));
  EXPECT_FALSE(table.find(arena.data() + 99));
  EXPECT_FALSE(table.find(arena.data() + 150));
  for (const std::size_t offset : {0U, 1U, 49U}) {
    const auto found = table.find(arena.data() + 100 + offset);
    ASSERT_TRUE(found) << offset;
    EXPECT_EQ(found->slot, 7U);
    EXPECT_EQ(found->offset, offset);
    EXPECT_EQ(found->room, 50 - offset);
    const MemoryRange theirs = table.locate(arena.data() + 100 + offset, 1);
    EXPECT_EQ(theirs.address, arena.data() + 10'000 + offset);
    EXPECT_EQ(theirs.room, 50 - offset);
    EXPECT_EQ(table.locate(arena.data() + 100 + offset, 0).address, arena.data() + 100 + offset);
  }
}

TEST(RegisteredMemory, OfManyIsFoundInAnyOrder) {
  RegisteredMemory table;
  // Each is adjacent to the next one; added in an order without a pattern.
  for (std::size_t i = 0; i < kMostRegistered; ++i) {
    const std::size_t slot = i * 77 % kMostRegistered;
    table.add(slot, registration(part(slot * 16, 16)));
  }
  for (std::size_t slot = 0; slot < kMostRegistered; ++slot) {
    const auto last = table.find(arena.data() + slot * 16 + 15);
    ASSERT_TRUE(last);
    EXPECT_EQ(last->slot, slot);
    EXPECT_EQ(last->room, 1U);
  }
  for (std::size_t slot = 0; slot < kMostRegistered; slot += 2) {
    table.remove(slot);
  }
  for (std::size_t slot = 0; slot < kMostRegistered; ++slot) {
    EXPECT_EQ(table.find(arena.data() + slot * 16).has_value(), slot % 2 == 1) << slot;
    EXPECT_EQ(table.at(slot) != nullptr, slot % 2 == 1);
  }
}

TEST(RegisteredMemory, IsNamedByItsBeginning) {
  RegisteredMemory table;
  table.add(3, registration(part(100, 50)));
  EXPECT_EQ(table.slot_of(arena.data() + 100), std::optional<std::size_t>(3));
  EXPECT_FALSE(table.slot_of(arena.data() + 101));
  EXPECT_FALSE(table.slot_of(arena.data() + 99));
}

TEST(RegisteredMemory, OverlapsWhatHasOneOfItsBytes) {
  RegisteredMemory table;
  table.add(0, registration(part(100, 50)));
  EXPECT_FALSE(table.overlaps(part(0, 100)));
  EXPECT_TRUE(table.overlaps(part(0, 101)));
  EXPECT_TRUE(table.overlaps(part(120, 1)));
  EXPECT_TRUE(table.overlaps(part(149, 100)));
  EXPECT_FALSE(table.overlaps(part(150, 100)));
}

TEST(RegisteredMemory, OfAnotherProcessIsNotMapped) {
  RegisteredMemory table;
  auto copied = registration(part(100, 50));
  copied->copies[1].process = *ProcessMemory::open(::getpid());
  copied->copies[1].address = 4711;
  copied->private_pes = {false, true};
  table.add(0, std::move(copied));
  table.add(1, registration(part(200, 50), arena.data()));
  table.add(2, registration(part(300, 50)));  // PE 1 is not one of the PEs that have it
  const auto private_one = table.find(arena.data() + 110);
  ASSERT_TRUE(private_one);
  EXPECT_EQ(table.locate(arena.data() + 110, 1).address, nullptr);
  EXPECT_FALSE(table.is_mapped(*private_one));
  EXPECT_FALSE(table.is_private(*private_one, 0));
  EXPECT_TRUE(table.is_private(*private_one, 1));
  ASSERT_NE(table.copied(*private_one, 1), nullptr);
  EXPECT_EQ(table.copied(*private_one, 1)->address, 4711U);
  EXPECT_EQ(table.copied(*private_one, 0), nullptr);
  EXPECT_TRUE(table.is_mapped(*table.find(arena.data() + 200)));
  EXPECT_FALSE(table.is_private(*table.find(arena.data() + 200), 1));
  EXPECT_EQ(table.copied(*table.find(arena.data() + 200), 1), nullptr);
  EXPECT_EQ(table.copied(*table.find(arena.data() + 300), 1), nullptr);
}

TEST(RegisteredMemory, IsFoundWhileOthersComeAndGo) {
  RegisteredMemory table;
  table.add(5, registration(part(1000, 100), arena.data() + 30'000));
  std::atomic<bool> ends{false};
  std::atomic<std::size_t> looks{0};
  std::thread changer([&] {
    for (int i = 0; i < 2000 || looks < 2000; ++i) {
      // Before and after it, so that its place in the table changes.
      table.add(1, registration(part(0, 100)));
      table.add(2, registration(part(2000, 100)));
      table.add(3, registration(part(500, 100)));
      for (const std::size_t slot : {2U, 1U, 3U}) {
        table.remove(slot);
      }
    }
    ends = true;
  });
  std::size_t misses = 0;
  while (!ends) {
    for (const std::size_t offset : {0U, 99U}) {
      misses += table.locate(arena.data() + 1000 + offset, 1).address == arena.data() + 30'000 + offset ? 0 : 1;
      misses += table.find(arena.data() + 3000) ? 1 : 0;
      ++looks;
    }
  }
  changer.join();
  EXPECT_EQ(misses, 0U);
}

}  // namespace
}  // namespace shmem
