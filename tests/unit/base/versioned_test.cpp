// SPDX-License-Identifier: Apache-2.0
#include "base/versioned.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

TEST(Versioned, ReadersNeverSeeAHalfWrittenValue) {
  struct Pair {
    std::uint64_t a, b, c;
  };
  static base::Versioned<Pair> shared;
  EXPECT_EQ(shared.version(), 0U);
  EXPECT_EQ(shared.read().c, 0U);
  constexpr int kReads = 50000;
  std::atomic<int> reading{2};
  std::atomic<int> torn{0};
  std::vector<std::thread> readers;
  readers.reserve(2);
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      for (int reads = 0; reads < kReads; ++reads) {
        const Pair seen = shared.read();
        torn += seen.a == seen.b && seen.b * 2 == seen.c ? 0 : 1;
      }
      --reading;
    });
  }
  std::uint64_t writes = 0;
  while (reading > 0) {
    ++writes;
    shared.write({writes, writes, writes * 2});
  }
  for (auto& reader : readers) {
    reader.join();
  }
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(shared.version(), 2 * writes);
}

TEST(Version, RefusesWhatWasWrittenMeanwhile) {
  base::Version version{};
  EXPECT_TRUE(version.read(0, [] {}));
  version.write(8, [&] { EXPECT_FALSE(version.read(0, [] {})) << "and while it is written"; });
  EXPECT_FALSE(version.read(0, [] {}));
  EXPECT_FALSE(version.read(8, [&] { version.write([] {}); }));
  EXPECT_EQ(version.get(), 10U);
  int loads = 0;
  EXPECT_EQ(version.read([&] {
    if (++loads == 1) {
      version.write([] {});
    }
    return loads;
  }),
            2);
}

}  // namespace
