// SPDX-License-Identifier: Apache-2.0
// A holder without memory for what it has to note: whichever allocation fails, the put alone fails, the range that it
// was written to is free again, and the next put works.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "tests/support/failing_new.hpp"
#include "tests/unit/kv/holder_fixture.hpp"

namespace {

thread_local bool is_engine = false;            // this thread's allocations never fail
constinit std::atomic<long> until_failure{-1};  // of the other threads: so many succeed before one fails
constinit std::atomic<int> failures{0};

}  // namespace

bool test_support::must_fail() {
  const bool fails = !is_engine && until_failure >= 0 && until_failure.fetch_sub(1) == 0;
  failures += fails ? 1 : 0;
  return fails;
}

namespace {

using namespace exchange_test;  // NOLINT(google-build-using-namespace): what the test is about

/// Puts a block while the holder's allocation `number` fails. False: it makes fewer.
bool put_without_memory(Engine& engine, const std::string& key, const std::string& block, long number) {
  const int before = failures;
  until_failure = number;
  const int first = engine.put(key, block);
  until_failure = -1;
  const bool failed = failures != before;
  EXPECT_TRUE(failed || first == 0) << first << " without a failure of an allocation";
  int again = engine.put(key, block);
  again = again == 0 || again == -EEXIST ? again : engine.put(key, block);  // the first may find the connection lost
  EXPECT_TRUE(again == 0 || again == -EEXIST) << again << " after a failure of allocation " << number;
  EXPECT_TRUE(engine.get_block(key) == block) << key << " after a failure of allocation " << number;
  // What the holder tells may be as it was before the failure.
  for (int i = 0; i < 20'000 && engine.holder_stats().writing_bytes != 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(engine.holder_stats().writing_bytes, 0U) << "after a failure of allocation " << number;
  return failed;
}

void put_until_nothing_fails(std::size_t bytes) {
  is_engine = true;
  const std::string name = "shortage-" + std::to_string(bytes) + "-" + std::to_string(::getpid());
  const Holder holder(name, {.bytes = 16 * kMiB});
  Engine engine(name);
  int failed = 0;
  // Beyond the first blocks, each evicts another one.
  constexpr int kBlocks = 200;
  for (int i = 0; i < kBlocks; ++i) {
    failed +=
        put_without_memory(engine, "key " + std::to_string(i), block_of(static_cast<char>('a' + i % 26), bytes), i % 40)
            ? 1
            : 0;
  }
  EXPECT_GE(failed, kBlocks / 20) << "the holder allocates less than this test expects";
}

TEST(HolderMemoryShortage, OfBlocksInOnePart) {
  put_until_nothing_fails(kMiB / 4);
}

TEST(HolderMemoryShortage, OfBlocksInSeveralParts) {
  put_until_nothing_fails(3 * kMiB / 2);
}

}  // namespace
